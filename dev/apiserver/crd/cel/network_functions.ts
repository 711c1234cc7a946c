import { CelFailure } from "./cel_failure.ts";
import { CidrBlock, IpAddress } from "../../validation/ip_address.ts";
import type { CelExtension } from "./cel_library.ts";

/** URL as parsed by Go's `url.ParseRequestURI`. */
class RequestUrl {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;

  constructor(text: string) {
    const parts =
      /^([a-zA-Z][a-zA-Z0-9+.-]*):(?:\/\/(?:[^/?#@]*@)?([^/?]*))?([^?]*)(?:\?(.*))?$/
        .exec(text) ??
        (text.startsWith("/") ? /^()()([^?]*)(?:\?(.*))?$/.exec(text) : null);
    if (parts === null || /[\s\p{Cc}]/u.test(text)) {
      throw new CelFailure(
        `URL parse error during conversion from string: parse ${
          JSON.stringify(text)
        }: invalid URI for request`,
      );
    }
    this.scheme = (parts[1] ?? "").toLowerCase();
    this.host = parts[2] ?? "";
    this.path = parts[3] ?? "";
    this.query = parts[4] ?? "";
  }

  toString(): string {
    return `${this.scheme}://${this.host}${this.path}?${this.query}`;
  }
}

/** Result of a parser; throws an error for an invalid text. */
function parsed<T>(value: T | undefined, what: string, text: string): T {
  if (value !== undefined) return value;
  throw new CelFailure(
    `${what} ${JSON.stringify(text)} parse error during conversion from string`,
  );
}

/** Pattern of IPv4-mapped IPv6 addresses, which are rejected. */
const MAPPED_REGEXP = /^::ffff:/i;

function ip(text: string): IpAddress {
  if (MAPPED_REGEXP.test(text)) {
    throw new CelFailure(
      `IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`,
    );
  }
  return parsed(IpAddress.parse(text), "IP Address", text);
}

function cidr(text: string): CidrBlock {
  return parsed(CidrBlock.parse(text), "network address", text);
}

/** Networks tested by the methods of addresses, such as `isLoopback()`. */
const TESTED: Readonly<Record<string, readonly string[]>> = {
  isUnspecified: ["0.0.0.0/32", "::/128"],
  isLoopback: ["127.0.0.0/8", "::1/128"],
  isLinkLocalMulticast: ["224.0.0.0/24", "ff02::/16"],
  isLinkLocalUnicast: ["169.254.0.0/16", "fe80::/10"],
};

/** Networks without global unicast addresses. */
const NOT_GLOBAL: readonly string[] = [
  "0.0.0.0/32",
  "255.255.255.255/32",
  "127.0.0.0/8",
  "224.0.0.0/4",
  "169.254.0.0/16",
  "::/128",
  "::1/128",
  "ff00::/8",
  "fe80::/10",
];

/** Parts of a URL, by the CEL methods that return them. */
const PARTS: Readonly<Record<string, (url: RequestUrl) => string>> = {
  getScheme: ({ scheme }) => scheme,
  getHost: ({ host }) => host,
  getHostname: ({ host }) =>
    host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1"),
  getPort: ({ host }) => /:(\d*)$/.exec(host)?.[1] ?? "",
  getEscapedPath: ({ path }) => path,
};

function areSame(a: unknown, b: unknown): boolean {
  return String(a) === String(b);
}

/** CEL functions `url()`, `ip()` and `cidr()`, with the methods of their values. */
export const NETWORKS: CelExtension = {
  types: {
    "kubernetes.URL": RequestUrl,
    "net.IP": IpAddress,
    "net.CIDR": CidrBlock,
  },
  namespaces: { ip: "IpNamespace" },
  functions: {
    "kubernetes.URL == kubernetes.URL": areSame,
    "url(string): kubernetes.URL": (text: string) => new RequestUrl(text),
    "isURL(string): bool": isUrl,
    "kubernetes.URL.getQuery(): map<string, list<string>>": (
      { query }: RequestUrl,
    ) => {
      const values = new Map<string, string[]>();
      for (const [name, value] of new URLSearchParams(query)) {
        values.set(name, [...values.get(name) ?? [], value]);
      }
      return values;
    },
    ...Object.fromEntries(
      Object.entries(PARTS).map(([name, part]) => [
        `kubernetes.URL.${name}(): string`,
        part,
      ]),
    ),
    "net.IP == net.IP": areSame,
    "ip(string): net.IP": ip,
    "isIP(string): bool": (text: string) => IpAddress.parse(text) !== undefined,
    "IpNamespace.isCanonical(string): bool": (_: unknown, text: string) =>
      String(ip(text)) === text,
    "string(net.IP): string": String,
    "net.IP.family(): int": ({ family }: IpAddress) => BigInt(family),
    "net.IP.isGlobalUnicast(): bool": (address: IpAddress) =>
      !NOT_GLOBAL.some((network) => address.isWithin(network)),
    ...Object.fromEntries(
      Object.entries(TESTED).map(([name, networks]) => [
        `net.IP.${name}(): bool`,
        (address: IpAddress) =>
          networks.some((network) => address.isWithin(network)),
      ]),
    ),
    "net.CIDR == net.CIDR": areSame,
    "cidr(string): net.CIDR": cidr,
    "isCIDR(string): bool": (text: string) =>
      CidrBlock.parse(text) !== undefined,
    "string(net.CIDR): string": String,
    "net.CIDR.containsIP(net.IP): bool": (
      block: CidrBlock,
      address: IpAddress,
    ) => block.contains(address),
    "net.CIDR.containsIP(string): bool": (block: CidrBlock, text: string) =>
      block.contains(ip(text)),
    "net.CIDR.containsCIDR(net.CIDR): bool": (
      block: CidrBlock,
      other: CidrBlock,
    ) => block.containsBlock(other),
    "net.CIDR.containsCIDR(string): bool": (block: CidrBlock, text: string) =>
      block.containsBlock(cidr(text)),
    "net.CIDR.ip(): net.IP": ({ address }: CidrBlock) => address,
    "net.CIDR.prefixLength(): int": ({ length }: CidrBlock) => BigInt(length),
    "net.CIDR.masked(): net.CIDR": ({ address, length }: CidrBlock) =>
      new CidrBlock(address.masked(length), length),
  },
};

function isUrl(text: string): boolean {
  try {
    return new RequestUrl(text) instanceof RequestUrl;
  } catch {
    return false;
  }
}
