// Addresses, below the path at which the service is: "/", or what a proxy put before it.
export const ROOT = new URL("..", import.meta.url).pathname;

// The service as somebody on another machine would write it.
export const SERVICE = location.origin + ROOT.replace(/\/$/, "");

export const comparison = (names) =>
  `${ROOT}compare?${names.map((name) => `study=${encodeURIComponent(name)}`).join("&")}`;

export const studyPage = (name) => `${ROOT}studies/${encodeURIComponent(name)}`;
