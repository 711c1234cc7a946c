import type { ServerRequest } from "../http/exchange.ts";
import { hasRules, loadCel } from "./cel/cel_library.ts";

export { nextCrdStatus } from "./crd_status.ts";
export { customResourceDefinition } from "./custom_definition.ts";
export { customOpenApi } from "./custom_open_api.ts";

const RULES = "x-kubernetes-validations";
const CRD_PATH = "/apis/apiextensions.k8s.io/";

/**
 * Loads what a request will need that is costly to load: the CEL library, when
 * it brings a definition with rules. Otherwise there is nothing to wait for.
 */
export function prepareRequest(
  { target, body }: ServerRequest,
): Promise<void> | undefined {
  if (body.length === 0 || !target.startsWith(CRD_PATH)) return undefined;
  return new TextDecoder().decode(body).includes(RULES) ? loadCel() : undefined;
}

/** The same for stored objects that come back to life. */
export function prepareObjects(
  objects: Iterable<unknown>,
): Promise<void> | undefined {
  for (const object of objects) if (hasRules(object)) return loadCel();
  return undefined;
}
