/**
 * Custom resources: the definition that serves the objects of a CRD, and the status
 * of the CRD. `definition_rules` validates CRDs, `schema`
 * applies structural schemas to objects (pruning, defaults, validation), `cel`
 * compiles and runs validation rules and loads the CEL library lazily. Pure
 * functions: must not import storage or controllers.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { ServerRequest } from "../http/exchange.ts";
import { hasRules, loadCel } from "./cel/cel_library.ts";

export { nextCrdStatus } from "./crd_status.ts";
export { customResourceDefinition } from "./custom_definition.ts";

const RULES = "x-kubernetes-validations";
/** Tag of the field of rules in protobuf: number 44, with a length. */
const RULES_TAG = Buffer.of(0xe2, 0x02);
const CRD_PATH = "/apis/apiextensions.k8s.io/";

/**
 * Loads the CEL library before a request whose body contains a CRD with rules,
 * because loading is slow; returns undefined for other requests.
 */
export function prepareRequest(
  { target, body }: ServerRequest,
): Promise<void> | undefined {
  if (body.length === 0 || !target.startsWith(CRD_PATH)) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  return bytes.includes(RULES) || bytes.includes(RULES_TAG)
    ? loadCel()
    : undefined;
}

/** Loads the CEL library if restored objects contain rules; returns undefined otherwise. */
export function prepareObjects(
  objects: Iterable<unknown>,
): Promise<void> | undefined {
  for (const object of objects) if (hasRules(object)) return loadCel();
  return undefined;
}
