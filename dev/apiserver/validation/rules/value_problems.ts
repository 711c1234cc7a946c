import { CidrBlock, IpAddress } from "../ip_address.ts";

/** Checks a port number; returns the violations. */
export function portProblems(port: number): string[] {
  return port >= 1 && port <= 65_535
    ? []
    : ["must be between 1 and 65535, inclusive"];
}

/** Checks a port name; returns the violations. */
export function portNameProblems(name: string): string[] {
  const problems: string[] = [];
  if (name.length > 15) problems.push("must be no more than 15 characters");
  if (!/^[-a-z0-9]+$/.test(name)) {
    problems.push(
      "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
  }
  if (!/[a-z]/.test(name)) {
    problems.push("must contain at least one letter (a-z)");
  }
  if (name.includes("--")) {
    problems.push("must not contain consecutive hyphens");
  }
  if (name.startsWith("-") || name.endsWith("-")) {
    problems.push("must not begin or end with a hyphen");
  }
  return problems;
}

/** Checks a number or percentage (`IntOrString`); returns the violations. */
export function intOrPercentProblems(value: number | string): string[] {
  if (typeof value === "string") {
    return /^[0-9]+%$/.test(value) ? [] : [
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ];
  }
  return value < 0 ? ["must be greater than or equal to 0"] : [];
}

/** Numeric value of an `IntOrString`: the number, or the number before the percent sign. */
export function intOrPercentValue(value: number | string | undefined): number {
  return typeof value === "string"
    ? Number.parseInt(value, 10) || 0
    : value ?? 0;
}

/** Checks a key of a ConfigMap or Secret; returns the violations. */
export function configKeyProblems(key: string): string[] {
  const problems: string[] = [];
  if (key.length > 253) problems.push("must be no more than 253 characters");
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    problems.push(
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    );
  }
  if (key === ".") problems.push("must not be '.'");
  if (key === "..") problems.push("must not be '..'");
  else if (key.startsWith("..")) problems.push("must not start with '..'");
  return problems;
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;

/** Whether the text is an IP address. */
export function isAddress(text: string): boolean {
  if (IPV4.test(text)) return true;
  if (!text.includes(":")) return false;
  try {
    new URL(`http://[${text}]/`);
    return true;
  } catch {
    return false;
  }
}

/** Checks an IP address; returns the violations. */
function addressProblems(text: string): string[] {
  return isAddress(text)
    ? []
    : ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"];
}

/** Checks a network in CIDR notation; returns the violations. */
function networkProblems(text: string): string[] {
  const [address = "", bits = "", ...rest] = text.split("/");
  const limit = address.includes(":") ? 128 : 32;
  const fits = rest.length === 0 && isAddress(address) &&
    /^\d{1,3}$/.test(bits) && Number(bits) <= limit;
  return fits
    ? []
    : ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"];
}

/** Checks an IP address in canonical form; returns the violations. */
export function strictAddressProblems(text: string): string[] {
  const address = IpAddress.parse(text);
  if (address !== undefined) return canonicalProblems(text, `${address}`);
  const plain = withoutLeadingZeros(text);
  if (plain === text || !isAddress(plain)) {
    return isAddress(text)
      ? ["must not be an IPv4-mapped IPv6 address"]
      : addressProblems(text);
  }
  return ["must not have leading 0s"];
}

/** Checks a network in CIDR notation and canonical form; returns the violations. */
export function strictNetworkProblems(text: string): string[] {
  const block = CidrBlock.parse(text);
  if (block !== undefined) {
    const { address, length } = block;
    return address.masked(length).bits === address.bits
      ? canonicalProblems(text, `${block}`)
      : ["must not have bits set beyond the prefix length"];
  }
  const plain = withoutLeadingZeros(text);
  if (plain === text || networkProblems(plain).length > 0) {
    return networkProblems(text).length === 0
      ? ["must not have an IPv4-mapped IPv6 address"]
      : networkProblems(text);
  }
  return ["must not have leading 0s in IP or prefix length"];
}

/** Checks an IP address that need not be in canonical form; returns the violations. */
export function plainAddressProblems(text: string): string[] {
  return IpAddress.parse(text) ? [] : strictAddressProblems(text);
}

/** Checks a network that need not be in canonical form; returns the violations. */
export function plainNetworkProblems(text: string): string[] {
  const block = CidrBlock.parse(text);
  return strictNetworkProblems(block ? `${block}` : text);
}

function canonicalProblems(text: string, canonical: string): string[] {
  return text === canonical
    ? []
    : [`must be in canonical form ("${canonical}")`];
}

/** Text of an address or network without leading zeros in its numbers. */
function withoutLeadingZeros(text: string): string {
  return text.replaceAll(/(^|[./])0+(?=\d)/g, "$1");
}
