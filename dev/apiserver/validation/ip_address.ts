import { isIPv4, isIPv6 } from "node:net";

/** Number of bits of an address by family. */
const BITS: Readonly<Record<4 | 6, number>> = { 4: 32, 6: 128 };

/** IP address. */
export class IpAddress {
  readonly family: 4 | 6;
  readonly bits: bigint;

  constructor(family: 4 | 6, bits: bigint) {
    this.family = family;
    this.bits = bits;
  }

  /**
   * Parses an address without zone.
   *
   * @returns Address; undefined if the text is invalid or an IPv4-mapped IPv6
   * address.
   */
  static parse(text: string): IpAddress | undefined {
    if (isIPv4(text)) {
      const bits = text.split(".").reduce(
        (sum, part) => sum * 256n + BigInt(part),
        0n,
      );
      return new IpAddress(4, bits);
    }
    if (!isIPv6(text) || text.includes("%")) return undefined;
    const plain = text.replace(/[\d.]+\.\d+$/, hexadecimal);
    const [head = "", tail] = plain.split("::");
    const groups = (part: string) => part === "" ? [] : part.split(":");
    const before = groups(head);
    const after = tail === undefined ? [] : groups(tail);
    const zeros = Array.from(
      { length: 8 - before.length - after.length },
      () => "0",
    );
    const bits = [...before, ...zeros, ...after].reduce(
      (sum, group) => sum * 65_536n + BigInt(`0x${group}`),
      0n,
    );
    // As in ::ffff:0102:0304.
    return bits >> 32n === 0xffffn ? undefined : new IpAddress(6, bits);
  }

  /** Address with all bits after the first `length` set to zero. */
  masked(length: number): IpAddress {
    const rest = BigInt(BITS[this.family] - length);
    return new IpAddress(this.family, (this.bits >> rest) << rest);
  }

  /** Whether the address is in a network, given in CIDR notation. */
  isWithin(network: string): boolean {
    return CidrBlock.parse(network)?.contains(this) ?? false;
  }

  /** Canonical text: lower case, with the longest run of zeros compressed. */
  toString(): string {
    if (this.family === 4) {
      return [24n, 16n, 8n, 0n].map((shift) => (this.bits >> shift) & 255n)
        .join(".");
    }
    const groups = Array.from(
      { length: 8 },
      (_, index) =>
        ((this.bits >> BigInt(112 - 16 * index)) & 65_535n).toString(16),
    );
    const zeros = longestZeros(groups);
    if (zeros.length < 2) return groups.join(":");
    const head = groups.slice(0, zeros.start).join(":");
    const tail = groups.slice(zeros.start + zeros.length).join(":");
    return `${head}::${tail}`;
  }
}

/** The last four bytes of an IPv6 address, written as one of IPv4, as two groups. */
function hexadecimal(dotted: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split(".").map(Number);
  return [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(
    ":",
  );
}

function longestZeros(
  groups: readonly string[],
): { readonly start: number; readonly length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (const [index, group] of groups.entries()) {
    if (group !== "0") start = index + 1;
    else if (index + 1 - start > best.length) {
      best = { start, length: index + 1 - start };
    }
  }
  return best;
}

/** Address with a prefix length (CIDR). */
export class CidrBlock {
  readonly address: IpAddress;
  readonly length: number;

  constructor(address: IpAddress, length: number) {
    this.address = address;
    this.length = length;
  }

  /** Parses CIDR notation; returns undefined if the text is invalid. */
  static parse(text: string): CidrBlock | undefined {
    const [address = "", length = "", ...rest] = text.split("/");
    const ip = IpAddress.parse(address);
    if (ip === undefined || rest.length > 0) return undefined;
    if (!/^(?:0|[1-9]\d*)$/.test(length)) return undefined;
    return Number(length) > BITS[ip.family]
      ? undefined
      : new CidrBlock(ip, Number(length));
  }

  /** Whether the network contains an address. */
  contains(ip: IpAddress): boolean {
    return ip.family === this.address.family &&
      ip.masked(this.length).bits === this.address.masked(this.length).bits;
  }

  /** Whether the network contains another network. */
  containsBlock(other: CidrBlock): boolean {
    return other.length >= this.length && this.contains(other.address);
  }

  /** CIDR notation with the address in canonical form. */
  toString(): string {
    return `${this.address}/${this.length}`;
  }
}
