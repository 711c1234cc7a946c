import { CelFailure } from "./cel_errors.ts";
import { type CelType, struct } from "./cel_type.ts";
import type { FunctionDefinitions } from "./function_declaration.ts";
import { registerClass } from "./values.ts";

/** Semantic version. */
class Semver {
  /** Major, minor and patch number. */
  readonly numbers: readonly bigint[];
  /** Parts of the prerelease; parts of digits only are numbers. */
  readonly prerelease: readonly (bigint | string)[];

  constructor(text: string) {
    if (text === "") throw new CelFailure("Version string empty");
    const [major, minor, ...rest] = text.split(".");
    if (major === undefined || minor === undefined || rest.length === 0) {
      throw new CelFailure("No Major.Minor.Patch elements found");
    }
    const leading = [number("major", major), number("minor", minor)];
    const [, patch = "", prerelease, build] =
      /^([^+-]*)(?:-([^+]*))?(?:\+(.*))?$/s.exec(rest.join(".")) ?? [];
    this.numbers = [...leading, number("patch", patch)];
    this.prerelease = prerelease?.split(".").map(prereleasePart) ?? [];
    for (const part of build?.split(".") ?? []) {
      if (part === "") throw new CelFailure("Build meta data is empty");
      checkCharacters(part, /^[\dA-Za-z-]*$/, "build meta data");
    }
  }

  /** Compares two versions; negative if this version is older. */
  compare(other: Semver): number {
    for (const [index, own] of this.numbers.entries()) {
      const order = compare(own, other.numbers[index] ?? 0n);
      if (order !== 0) return order;
    }
    const [a, b] = [this.prerelease, other.prerelease];
    // A release is newer than its prereleases.
    if (a.length === 0 || b.length === 0) {
      return Math.sign(b.length - a.length);
    }
    for (const [index, part] of a.entries()) {
      const against = b[index];
      if (against === undefined) return 1;
      const order = typeof part === typeof against
        ? compare(part as string, against as string)
        : typeof part === "bigint"
        ? -1
        : 1;
      if (order !== 0) return order;
    }
    return a.length < b.length ? -1 : 0;
  }
}

function isSemver(text: string, loose = false): boolean {
  try {
    return Boolean(semver(text, loose));
  } catch {
    return false;
  }
}

function semver(text: string, loose = false): Semver {
  return new Semver(loose ? completed(text) : text);
}

/** Order of two numbers or texts. */
function compare<T extends bigint | string>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Type of semantic versions. */
export const SEMVER_TYPE: CelType = struct("kubernetes.Semver");

registerClass(Semver, {
  type: SEMVER_TYPE,
  equals: (a: Semver, b: Semver) => a.compare(b) === 0,
});

/** CEL function `semver()`, with the methods of versions. */
export const SEMVERS: FunctionDefinitions = {
  "semver(string): Semver": (text: string) => semver(text),
  "semver(string, bool): Semver": semver,
  "isSemver(string): bool": (text: string) => isSemver(text),
  "isSemver(string, bool): bool": isSemver,
  ...Object.fromEntries(["major", "minor", "patch"].map((name, index) => [
    `${name}(this Semver): int`,
    ({ numbers }: Semver) => BigInt.asIntN(64, numbers[index] ?? 0n),
  ])),
  "isLessThan(this Semver, Semver): bool": (a: Semver, b: Semver) =>
    a.compare(b) < 0,
  "isGreaterThan(this Semver, Semver): bool": (a: Semver, b: Semver) =>
    a.compare(b) > 0,
  "compareTo(this Semver, Semver): int": (a: Semver, b: Semver) =>
    BigInt(a.compare(b)),
};

function number(name: string, text: string): bigint {
  checkCharacters(text, /^\d*$/, `${name} number`);
  if (/^0./.test(text)) {
    const subject = `${name[0]?.toUpperCase()}${name.slice(1)} number`;
    throw new CelFailure(
      `${subject} must not contain leading zeroes ${JSON.stringify(text)}`,
    );
  }
  return parsedUint(text);
}

function parsedUint(text: string): bigint {
  const value = BigInt(text);
  const wrong = text === ""
    ? "invalid syntax"
    : value >= 2n ** 64n
    ? "value out of range"
    : undefined;
  if (wrong === undefined) return value;
  throw new CelFailure(
    `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${wrong}`,
  );
}

function prereleasePart(text: string): bigint | string {
  if (text === "") throw new CelFailure("Prerelease is empty");
  if (/^0\d+$/.test(text)) {
    throw new CelFailure(
      `Numeric PreRelease version must not contain leading zeroes ${
        JSON.stringify(text)
      }`,
    );
  }
  if (/^\d+$/.test(text)) return parsedUint(text);
  checkCharacters(text, /^[\dA-Za-z-]*$/, "prerelease");
  return text;
}

function checkCharacters(text: string, allowed: RegExp, where: string): void {
  if (allowed.test(text)) return;
  throw new CelFailure(
    `Invalid character(s) found in ${where} ${JSON.stringify(text)}`,
  );
}

/** Version without a leading `v` and leading zeros, with all three numbers. */
function completed(text: string): string {
  const [major = "", minor, ...rest] = text.replace(/^v/, "").split(".");
  const parts = [major, minor, rest.length > 0 ? rest.join(".") : undefined]
    .filter((part) => part !== undefined).map(withoutZeros);
  if (parts.length < 3 && /[+-]/.test(parts.at(-1) ?? "")) {
    throw new CelFailure(
      "short version cannot contain PreRelease/Build meta data",
    );
  }
  return [...parts, "0", "0"].slice(0, 3).join(".");
}

function withoutZeros(part: string): string {
  if (part.length < 2) return part;
  const short = part.replace(/^0+/, "");
  return /^\d/.test(short) ? short : `0${short}`;
}
