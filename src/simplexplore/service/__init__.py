"""Studies over HTTP: the service, its tokens and its dashboard. Needs the extra ``service``."""
