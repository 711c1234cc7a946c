import type {
  EndpointAddress,
  EndpointPort,
  Endpoints,
  EndpointSubset,
} from "../../../core/kinds/core_v1.ts";
import type {
  DiscoveryEndpointPort,
  Endpoint,
  EndpointSlice,
  ForZone,
} from "../../../core/kinds/discovery_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  labelProblems,
  labelValueProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { checkFields, optionalText, text } from "./field_checks.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { addressProblems, portProblems } from "./value_problems.ts";

function checkSubsets({ subsets }: Endpoints, fieldPath: FieldPath): void {
  for (const [index, subset] of (subsets ?? []).entries()) {
    checkSubset(subset, fieldPath.child(`subsets[${index}]`));
  }
}

function checkSubset(subset: EndpointSubset, fieldPath: FieldPath): void {
  const { addresses = [], notReadyAddresses = [], ports = [] } = subset;
  if (addresses.length === 0 && notReadyAddresses.length === 0) {
    fieldPath.required("", "must specify `addresses` or `notReadyAddresses`");
  }
  for (const [index, address] of addresses.entries()) {
    checkAddress(address, fieldPath.child(`addresses[${index}]`));
  }
  for (const [index, address] of notReadyAddresses.entries()) {
    checkAddress(address, fieldPath.child(`notReadyAddresses[${index}]`));
  }
  for (const [index, port] of ports.entries()) {
    checkPort(port, ports.length > 1, fieldPath.child(`ports[${index}]`));
  }
}

function checkAddress(address: EndpointAddress, fieldPath: FieldPath): void {
  const { ip = "", hostname, nodeName } = address;
  fieldPath.problems("ip", ip, addressProblems(ip));
  optionalText(labelProblems)(hostname, "hostname", fieldPath);
  text(subdomainProblems)(nodeName, "nodeName", fieldPath);
  checkSpecialAddress(ip, "ip", fieldPath);
}

/** Address ranges that endpoints must not use, with the messages. */
const SPECIAL: readonly (readonly [RegExp, string])[] = [
  [/^127\.|^::1$/, "may not be in the loopback range (127.0.0.0/8, ::1/128)"],
  [
    /^169\.254\.|^fe[89ab][0-9a-f]:/i,
    "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
  ],
  [
    /^224\.0\.0\.|^ff[0-9a-f]2:/i,
    "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
  ],
];

/** Checks that an address is in none of the special ranges. */
export function checkSpecialAddress(
  address: string,
  field: string,
  fieldPath: FieldPath,
): void {
  if (addressProblems(address).length > 0) {
    fieldPath.invalid(field, address, "must be a valid IP address");
    return;
  }
  if (address === "0.0.0.0" || address === "::") {
    fieldPath.invalid(field, address, `may not be unspecified (${address})`);
  }
  for (const [pattern, why] of SPECIAL) {
    if (pattern.test(address)) fieldPath.invalid(field, address, why);
  }
}

function checkPort(
  { name, port = 0, appProtocol }: EndpointPort,
  needsName: boolean,
  fieldPath: FieldPath,
): void {
  if (name) fieldPath.problems("name", name, labelProblems(name));
  else if (needsName) fieldPath.required("name");
  fieldPath.problems("port", port, portProblems(port));
  text(qualifiedNameProblems)(appProtocol, "appProtocol", fieldPath);
}

function checkSlice(slice: EndpointSlice, fieldPath: FieldPath): void {
  const { addressType, endpoints, ports } = slice;
  if (!addressType) fieldPath.required("addressType");
  for (const [index, endpoint] of (endpoints ?? []).entries()) {
    const at = fieldPath.child(`endpoints[${index}]`);
    checkEndpoint(endpoint, addressType, at);
  }
  const names = new Set<string>();
  for (const [index, { name = "" }] of (ports ?? []).entries()) {
    if (names.has(name)) fieldPath.duplicate(`ports[${index}].name`, name);
    names.add(name);
  }
}

function checkEndpoint(
  { addresses: given, hints }: Endpoint,
  addressType: string,
  fieldPath: FieldPath,
): void {
  // Go encodes an empty list as null.
  const addresses = given ?? [];
  if (addresses.length === 0) {
    fieldPath.required("addresses", "must contain at least 1 address");
  }
  for (const [index, address] of addresses.entries()) {
    const at = `addresses[${index}]`;
    if (addressType === "FQDN") {
      fieldPath.problems(at, address, subdomainProblems(address));
    } else if (addressType === "IPv4" || addressType === "IPv6") {
      fieldPath.problems(at, address, addressProblems(address));
    }
  }
  const zones = new Set<string>();
  for (const [index, { name }] of (hints?.forZones ?? []).entries()) {
    if (zones.has(name)) {
      fieldPath.duplicate(`hints.forZones[${index}].name`, name);
    }
    zones.add(name);
  }
}

/** Validation rules of Endpoints and EndpointSlices. */
export const ENDPOINT_RULES: ValidationRules = [
  check("api.core.v1.Endpoints", checkSubsets),
  check("api.discovery.v1.EndpointSlice", checkSlice),
  checkFields<Endpoint>("api.discovery.v1.Endpoint", {
    hostname: optionalText(labelProblems),
    nodeName: text(subdomainProblems),
  }),
  checkFields<ForZone>("api.discovery.v1.ForZone", {
    name: text(labelValueProblems),
  }),
  checkFields<DiscoveryEndpointPort>("api.discovery.v1.EndpointPort", {
    name: optionalText(labelProblems),
    appProtocol: text(qualifiedNameProblems),
  }),
];
