import process from "node:process";

/**
 * Module `node:http`, without the cost of its import: an import reads every export,
 * including the one that loads Node's implementation of `fetch`, which takes 10 MiB.
 */
export function nodeHttp(): typeof import("node:http") {
  return process.getBuiltinModule("node:http");
}

/** Module `node:https`, without the cost of its import. */
export function nodeHttps(): typeof import("node:https") {
  return process.getBuiltinModule("node:https");
}
