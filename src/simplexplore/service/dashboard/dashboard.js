// The dashboard: modules of our own, no libraries, no build step. It is a client of /v1 like
// any other. This one shows the page that the address names.
import { ROOT } from "./address.js";
import { showComparison } from "./compare_page.js";
import { showCreateForm } from "./create_page.js";
import { showList } from "./list_page.js";
import { showStudy } from "./study_page.js";

const [first, ...rest] = location.pathname.slice(ROOT.length).split("/");
if (first === "studies") showStudy(decodeURIComponent(rest.join("/")));
else if (first === "new") showCreateForm();
else if (first === "compare") showComparison(new URLSearchParams(location.search).getAll("study"));
else showList();
