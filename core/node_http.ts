import process from "node:process";

/**
 * Module `node:http`, without the cost of its import: that reads every export, one
 * of which loads Node's implementation of `fetch`, with 10 MiB of memory.
 */
export function nodeHttp(): typeof import("node:http") {
  return process.getBuiltinModule("node:http");
}

/** Module `node:https`, in the same way. */
export function nodeHttps(): typeof import("node:https") {
  return process.getBuiltinModule("node:https");
}
