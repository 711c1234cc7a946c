import { isIPv4, isIPv6 } from "node:net";

/** How many bits an address of a family has. */
const BITS: Readonly<Record<4 | 6, number>> = { 4: 32, 6: 128 };

/** An IP address as a number. */
export class IpAddress {
  readonly family: 4 | 6;
  readonly bits: bigint;

  constructor(family: 4 | 6, bits: bigint) {
    this.family = family;
    this.bits = bits;
  }

  /**
   * Reads an address without a zone, and not an IPv4 address within IPv6.
   *
   * @returns undefined if the text is none.
   */
  static parse(text: string): IpAddress | undefined {
    if (isIPv4(text)) {
      const bits = text.split(".").reduce(
        (sum, part) => sum * 256n + BigInt(part),
        0n,
      );
      return new IpAddress(4, bits);
    }
    if (!isIPv6(text) || text.includes("%") || text.includes(".")) {
      return undefined;
    }
    const [head = "", tail] = text.split("::");
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
    return new IpAddress(6, bits);
  }

  /** The first `length` bits of the address, the others zero. */
  masked(length: number): IpAddress {
    const rest = BigInt(BITS[this.family] - length);
    return new IpAddress(this.family, (this.bits >> rest) << rest);
  }

  /** Whether it lies in a network. */
  isWithin(network: string): boolean {
    return CidrBlock.parse(network)?.contains(this) ?? false;
  }

  /** The canonical text: lower case, the longest run of zeros left out. */
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

/** An address and how many of its bits name the network. */
export class CidrBlock {
  readonly address: IpAddress;
  readonly length: number;

  constructor(address: IpAddress, length: number) {
    this.address = address;
    this.length = length;
  }

  /** @returns undefined if the text is none. */
  static parse(text: string): CidrBlock | undefined {
    const [address = "", length = "", ...rest] = text.split("/");
    const ip = IpAddress.parse(address);
    if (ip === undefined || rest.length > 0) return undefined;
    if (!/^(?:0|[1-9]\d*)$/.test(length)) return undefined;
    return Number(length) > BITS[ip.family]
      ? undefined
      : new CidrBlock(ip, Number(length));
  }

  /** Whether an address lies in the network. */
  contains(ip: IpAddress): boolean {
    return ip.family === this.address.family &&
      ip.masked(this.length).bits === this.address.masked(this.length).bits;
  }

  /** Whether a whole network lies in this one. */
  containsBlock(other: CidrBlock): boolean {
    return other.length >= this.length && this.contains(other.address);
  }

  /** The text, with the address in canonical form. */
  toString(): string {
    return `${this.address}/${this.length}`;
  }
}
