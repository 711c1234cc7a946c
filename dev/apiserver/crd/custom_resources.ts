/**
 * Custom resources: the definition that serves the objects of a CRD, and the status
 * of the CRD. `definition_rules` validates CRDs, `schema`
 * applies structural schemas to objects (pruning, defaults, validation), `cel`
 * compiles and runs validation rules. Pure
 * functions: must not import storage or controllers.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { ServerRequest } from "../http/exchange.ts";
import { loadPatterns } from "../cel/pattern.ts";
import { hasPatterns } from "./cel/has_rules.ts";

export { nextCrdStatus } from "./crd_status.ts";
export { customResourceDefinition } from "./custom_definition.ts";

/** Names in the bodies of CRDs with rules or patterns. */
const NAMES = ["x-kubernetes-validations", "pattern"];
/** Start of a body in protobuf. */
const PROTOBUF = Buffer.from("k8s\0");
const CRD_PATH = "/apis/apiextensions.k8s.io/";

/**
 * Loads the library of regular expressions before a request whose body may
 * contain a CRD with rules or patterns, because loading is slow; returns
 * undefined for other requests.
 */
export function prepareRequest(
  { target, body }: ServerRequest,
): Promise<void> | undefined {
  if (body.length === 0 || !target.startsWith(CRD_PATH)) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  return bytes.subarray(0, PROTOBUF.length).equals(PROTOBUF) ||
      NAMES.some((name) => bytes.includes(name))
    ? loadPatterns()
    : undefined;
}

/** Loads the library of regular expressions if restored objects need it; returns undefined otherwise. */
export function prepareObjects(
  objects: Iterable<unknown>,
): Promise<void> | undefined {
  for (const object of objects) if (hasPatterns(object)) return loadPatterns();
  return undefined;
}
