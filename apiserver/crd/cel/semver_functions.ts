import type { Environment } from "@marcbachmann/cel-js";
import { CelFailure } from "./cel_failure.ts";
import { compare } from "./list_functions.ts";

/** Semantic version. */
class Semver {
  /** Major, minor and patch number. */
  readonly numbers: readonly bigint[];
  /** Parts of the prerelease; those of digits are numbers. */
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

  /** Compares two versions; negative if this one is older. */
  compare(other: Semver): number {
    for (const [index, own] of this.numbers.entries()) {
      const order = compare(own, other.numbers[index]);
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
        ? compare(part, against)
        : typeof part === "bigint"
        ? -1
        : 1;
      if (order !== 0) return order;
    }
    return a.length < b.length ? -1 : 0;
  }
}

/** Registers `semver()` and the methods of versions. */
export function registerSemverFunctions(environment: Environment): void {
  const parse = (text: string, loose = false) =>
    new Semver(loose ? completed(text) : text);
  const is = (text: string, loose = false) => {
    try {
      return Boolean(parse(text, loose));
    } catch {
      return false;
    }
  };
  const type = "kubernetes.Semver";
  environment.registerType(type, { ctor: Semver });
  for (const args of ["string", "string, bool"]) {
    environment
      .registerFunction(
        `semver(${args}): ${type}`,
        (text: string, loose?: boolean) => parse(text, loose === true),
      )
      .registerFunction(
        `isSemver(${args}): bool`,
        (text: string, loose?: boolean) => is(text, loose === true),
      );
  }
  for (const [index, name] of ["major", "minor", "patch"].entries()) {
    environment.registerFunction(
      `${type}.${name}(): int`,
      ({ numbers }: Semver) => numbers[index],
    );
  }
  environment
    .registerOperator(
      `${type} == ${type}`,
      (a: Semver, b: Semver) => a.compare(b) === 0,
    )
    .registerFunction(
      `${type}.isLessThan(${type}): bool`,
      (a: Semver, b: Semver) => a.compare(b) < 0,
    )
    .registerFunction(
      `${type}.isGreaterThan(${type}): bool`,
      (a: Semver, b: Semver) => a.compare(b) > 0,
    )
    .registerFunction(
      `${type}.compareTo(${type}): int`,
      (a: Semver, b: Semver) => BigInt(a.compare(b)),
    );
}

function number(name: string, text: string): bigint {
  checkCharacters(text, /^\d*$/, `${name} number`);
  if (/^0./.test(text)) {
    const subject = `${name[0]?.toUpperCase()}${name.slice(1)} number`;
    throw new CelFailure(
      `${subject} must not contain leading zeroes ${JSON.stringify(text)}`,
    );
  }
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
  if (/^\d+$/.test(text)) return BigInt(text);
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
    .filter((part) => part !== undefined)
    .map((part) => part.replace(/^0+(?=\d)/, ""));
  if (parts.length < 3 && /[+-]/.test(parts.at(-1) ?? "")) {
    throw new CelFailure(
      "short version cannot contain PreRelease/Build meta data",
    );
  }
  return [...parts, "0", "0"].slice(0, 3).join(".");
}
