import type { Environment } from "@marcbachmann/cel-js";
import { CelFailure } from "./cel_failure.ts";
import { CidrBlock, IpAddress } from "./ip_address.ts";

/** Receiver of `ip.isCanonical()`. */
class Ip {}

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

/** Result of a parser; throws an error if the text is invalid. */
function parsed<T>(value: T | undefined, what: string, text: string): T {
  if (value !== undefined) return value;
  throw new CelFailure(
    `${what} ${JSON.stringify(text)} parse error during conversion from string`,
  );
}

/** IPv4-mapped IPv6 address, which is rejected. */
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

/** Registers `url()`, `ip()`, `cidr()` and the methods of their values. */
export function registerNetworkFunctions(environment: Environment): void {
  registerUrls(environment);
  registerAddresses(environment);
  environment
    .registerType("net.CIDR", { ctor: CidrBlock })
    .registerOperator(
      "net.CIDR == net.CIDR",
      (a: CidrBlock, b: CidrBlock) => String(a) === String(b),
    )
    .registerFunction("cidr(string): net.CIDR", cidr)
    .registerFunction(
      "isCIDR(string): bool",
      (text: string) => CidrBlock.parse(text) !== undefined,
    )
    .registerFunction(
      "string(net.CIDR): string",
      (block: CidrBlock) => String(block),
    )
    .registerFunction(
      "net.CIDR.containsIP(net.IP): bool",
      (block: CidrBlock, address: IpAddress) => block.contains(address),
    )
    .registerFunction(
      "net.CIDR.containsIP(string): bool",
      (block: CidrBlock, text: string) => block.contains(ip(text)),
    )
    .registerFunction(
      "net.CIDR.containsCIDR(net.CIDR): bool",
      (block: CidrBlock, other: CidrBlock) => block.containsBlock(other),
    )
    .registerFunction(
      "net.CIDR.containsCIDR(string): bool",
      (block: CidrBlock, text: string) => block.containsBlock(cidr(text)),
    )
    .registerFunction(
      "net.CIDR.ip(): net.IP",
      (block: CidrBlock) => block.address,
    )
    .registerFunction(
      "net.CIDR.prefixLength(): int",
      (block: CidrBlock) => BigInt(block.length),
    )
    .registerFunction(
      "net.CIDR.masked(): net.CIDR",
      ({ address, length }: CidrBlock) =>
        new CidrBlock(address.masked(length), length),
    );
}

/** Networks tested by the methods of addresses, such as `isLoopback()`. */
const NETWORKS: Readonly<Record<string, readonly string[]>> = {
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

function registerAddresses(environment: Environment): void {
  environment
    .registerType("net.IP", { ctor: IpAddress })
    .registerType("IpNamespace", { ctor: Ip })
    .registerConstant("ip", "IpNamespace", new Ip())
    .registerOperator(
      "net.IP == net.IP",
      (a: IpAddress, b: IpAddress) => String(a) === String(b),
    )
    .registerFunction("ip(string): net.IP", ip)
    .registerFunction(
      "isIP(string): bool",
      (text: string) => IpAddress.parse(text) !== undefined,
    )
    .registerFunction(
      "IpNamespace.isCanonical(string): bool",
      (_: Ip, text: string) => String(ip(text)) === text,
    )
    .registerFunction(
      "string(net.IP): string",
      (address: IpAddress) => String(address),
    )
    .registerFunction(
      "net.IP.family(): int",
      ({ family }: IpAddress) => BigInt(family),
    )
    .registerFunction(
      "net.IP.isGlobalUnicast(): bool",
      (address: IpAddress) =>
        !NOT_GLOBAL.some((network) => address.isWithin(network)),
    );
  for (const [name, networks] of Object.entries(NETWORKS)) {
    environment.registerFunction(
      `net.IP.${name}(): bool`,
      (address: IpAddress) =>
        networks.some((network) => address.isWithin(network)),
    );
  }
}

function registerUrls(environment: Environment): void {
  const parts: Readonly<Record<string, (url: RequestUrl) => string>> = {
    getScheme: ({ scheme }) => scheme,
    getHost: ({ host }) => host,
    getHostname: ({ host }) =>
      host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1"),
    getPort: ({ host }) => /:(\d*)$/.exec(host)?.[1] ?? "",
    getEscapedPath: ({ path }) => path,
  };
  environment
    .registerType("kubernetes.URL", { ctor: RequestUrl })
    .registerOperator(
      "kubernetes.URL == kubernetes.URL",
      (a: RequestUrl, b: RequestUrl) => String(a) === String(b),
    )
    .registerFunction(
      "url(string): kubernetes.URL",
      (text: string) => new RequestUrl(text),
    )
    .registerFunction("isURL(string): bool", isUrl)
    .registerFunction(
      "kubernetes.URL.getQuery(): map<string, list<string>>",
      ({ query }: RequestUrl) => {
        const values = new Map<string, string[]>();
        for (const [name, value] of new URLSearchParams(query)) {
          values.set(name, [...values.get(name) ?? [], value]);
        }
        return values;
      },
    );
  for (const [name, part] of Object.entries(parts)) {
    environment.registerFunction(`kubernetes.URL.${name}(): string`, part);
  }
}

function isUrl(text: string): boolean {
  try {
    return new RequestUrl(text) instanceof RequestUrl;
  } catch {
    return false;
  }
}
