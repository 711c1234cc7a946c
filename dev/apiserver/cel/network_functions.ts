import {
  parseRequestUrl,
  queryValues,
  type RequestUrl,
  requestUrlProblem,
} from "../validation/request_url.ts";
import { CidrBlock, IpAddress } from "../validation/ip_address.ts";
import { goQuote } from "../validation/go_value.ts";
import {
  addressProblem,
  prefixProblem,
} from "../validation/address_problem.ts";
import { CelFailure, NO_SUCH_OVERLOAD } from "./cel_errors.ts";
import { type CelType, opaque, struct } from "./cel_type.ts";
import type { FunctionDefinitions } from "./function_declaration.ts";
import { registerClass, ValueMap } from "./values.ts";

/** URL as a value. */
class Url {
  readonly parts: RequestUrl;

  constructor(text: string) {
    const parts = parseRequestUrl(text);
    if (typeof parts === "string") {
      throw new CelFailure(
        `URL parse error during conversion from string: ${parts}`,
      );
    }
    this.parts = parts;
  }
}

/** Type of URLs. */
export const URL_TYPE: CelType = struct("kubernetes.URL");

/** Type of IP addresses. */
export const IP_TYPE: CelType = opaque("net.IP");

/** Type of networks. */
export const CIDR_TYPE: CelType = opaque("net.CIDR");

registerClass(Url, {
  type: URL_TYPE,
  equals: (a: Url, b: Url) => a.parts.text === b.parts.text,
});
registerClass(IpAddress, {
  type: IP_TYPE,
  equals: (a: IpAddress, b: IpAddress) => String(a) === String(b),
});
registerClass(CidrBlock, {
  type: CIDR_TYPE,
  equals: (a: CidrBlock, b: CidrBlock) => String(a) === String(b),
});

function ip(text: string): IpAddress {
  const address = IpAddress.parse(text);
  if (address) return address;
  const problem = addressProblem(text);
  throw new CelFailure(
    problem !== undefined
      ? `IP Address ${
        goQuote(text)
      } parse error during conversion from string: ${problem}`
      : text.includes("%")
      ? `IP address ${goQuote(text)} with zone value is not allowed`
      : `IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`,
  );
}

function cidr(text: string): CidrBlock {
  const block = CidrBlock.parse(text);
  if (block) return block;
  const problem = prefixProblem(text);
  const why = problem === undefined
    ? `IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`
    : `network address parse error during conversion from string: ${problem}`;
  throw new CelFailure(
    `network address parse error during conversion from string: ${why}`,
  );
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

/** CEL functions `url()`, `ip()` and `cidr()`, with the methods of their values. */
export const NETWORKS: FunctionDefinitions = {
  "url(string): URL": (text: string) => new Url(text),
  "isURL(string): bool": (text: string) =>
    requestUrlProblem(text) === undefined,
  "getQuery(this URL): map<string, list<string>>": ({ parts }: Url) =>
    new ValueMap(queryValues(parts.query)),
  ...Object.fromEntries(
    Object.entries(PARTS).map(([name, part]) => [
      `${name}(this URL): string`,
      ({ parts }: Url) => part(parts),
    ]),
  ),
  "ip(string): IP": ip,
  "ip(this CIDR): IP": ({ address }: CidrBlock) => address,
  "isIP(string): bool": (text: string) => IpAddress.parse(text) !== undefined,
  "ip.isCanonical(string): bool": (text: string) => String(ip(text)) === text,
  "string(IP): string": String,
  "family(this IP): int": ({ family }: IpAddress) => BigInt(family),
  "isGlobalUnicast(this IP): bool": (address: IpAddress) =>
    !NOT_GLOBAL.some((network) => address.isWithin(network)),
  ...Object.fromEntries(
    Object.entries(TESTED).map(([name, networks]) => [
      `${name}(this IP): bool`,
      (address: IpAddress) =>
        networks.some((network) => address.isWithin(network)),
    ]),
  ),
  "cidr(string): CIDR": cidr,
  "isCIDR(string): bool": (text: string) => CidrBlock.parse(text) !== undefined,
  "string(CIDR): string": String,
  "containsIP(this CIDR, string): bool": (block: CidrBlock, text: string) => {
    const address = IpAddress.parse(text);
    return address === undefined ? NO_SUCH_OVERLOAD : block.contains(address);
  },
  "containsIP(this CIDR, IP): bool": (block: CidrBlock, address: IpAddress) =>
    block.contains(address),
  "containsCIDR(this CIDR, string): bool": (block: CidrBlock, text: string) =>
    block.containsBlock(cidr(text)),
  "containsCIDR(this CIDR, CIDR): bool": (block: CidrBlock, other: CidrBlock) =>
    block.containsBlock(other),
  "prefixLength(this CIDR): int": ({ length }: CidrBlock) => BigInt(length),
  "masked(this CIDR): CIDR": ({ address, length }: CidrBlock) =>
    new CidrBlock(address.masked(length), length),
};
