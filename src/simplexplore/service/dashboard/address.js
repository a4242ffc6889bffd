// Addresses, below the path at which the service is: "/", or what a proxy put before it.
export const ROOT = new URL("..", import.meta.url).pathname;

export const studyPage = (name) => `${ROOT}studies/${encodeURIComponent(name)}`;
