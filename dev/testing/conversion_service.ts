/**
 * Conversion between the versions of kinds in the process of an embedded API
 * server, for kinds that are installed without their operator.
 *
 * @module
 */
import type { DefinedKind, installCrd } from "@coracle/operator/crd";
import { conversionHandler } from "@coracle/operator/internal";
import type { ApiServerOptions } from "../apiserver/server_options.ts";

/** Service under which an embedded API server finds the conversions. */
const SERVICE = { namespace: "coracle", name: "conversion" } as const;

/** Services of an embedded API server that convert objects of kinds. */
export function conversionServices(
  kinds: readonly DefinedKind[] = [],
): NonNullable<ApiServerOptions["services"]> {
  const converted = kinds.filter((kind) => kind?.conversion !== undefined);
  if (converted.length === 0) return {};
  const convert = conversionHandler(converted);
  return {
    [`${SERVICE.namespace}/${SERVICE.name}`]: (review: unknown) =>
      convert(review),
  };
}

/** Place of the conversion of a kind; undefined if it needs none. */
export function conversionConfig(
  kind: DefinedKind,
): NonNullable<Parameters<typeof installCrd>[2]>["conversion"] {
  return kind?.conversion &&
    { service: { ...SERVICE, port: 443, path: "/convert" } };
}
