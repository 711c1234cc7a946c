/**
 * The values of a configuration as files and environments write them, each
 * checked and named by where it stands.
 *
 * @module
 */
import { milliseconds } from "../api/duration.ts";

/**
 * Reads one value.
 *
 * @throws {TypeError | RangeError | SyntaxError} If it makes no sense there.
 */
export type Reader = (value: unknown, path: string) => unknown;

function refuse(value: unknown, path: string, rule: string): never {
  throw new TypeError(
    `Cannot use the configuration ${path}: it must be ${rule}: received ${
      JSON.stringify(value)
    }`,
  );
}

/** Any text. */
export function text(value: unknown, path: string): string {
  return typeof value === "string" ? value : refuse(value, path, "text");
}

/** True or false. */
export function flag(value: unknown, path: string): boolean {
  if (value === true || value === "true") return true;
  if (value === false || value === "false") return false;
  return refuse(value, path, "true or false");
}

/** A finite number. */
export function number(value: unknown, path: string): number {
  const read = typeof value === "string" && value.trim() !== ""
    ? Number(value)
    : value;
  return typeof read === "number" && Number.isFinite(read)
    ? read
    : refuse(value, path, "a number");
}

/** A number without a fraction. */
export function wholeNumber(value: unknown, path: string): number {
  const read = number(value, path);
  return Number.isInteger(read) ? read : refuse(value, path, "a whole number");
}

/** A duration; plain digits are milliseconds. */
export function duration(value: unknown, path: string): number {
  const plain = typeof value === "string" && /^\d+$/.test(value)
    ? Number(value)
    : value;
  return milliseconds(plain as string | number, path);
}

/** A duration, or false for none. */
export function durationOrFalse(value: unknown, path: string): number | false {
  return value === false || value === "false" ? false : duration(value, path);
}

/** False: what has options of its own is switched off. */
export function no(value: unknown, path: string): false {
  if (value === false || value === "false") return false;
  return refuse(value, path, "false, or have options of its own");
}

/** False: what is switched off is as if it had not been asked for. */
export function off(value: unknown, path: string): undefined {
  no(value, path);
  return undefined;
}

/** Any text, or false for none. */
export function textOrFalse(value: unknown, path: string): string | false {
  return value === false || value === "false" ? false : text(value, path);
}

/** Texts, in an environment with commas between them. */
export function list(value: unknown, path: string): readonly string[] {
  const items = typeof value === "string" ? value.split(",") : value;
  return isTexts(items) ? items : refuse(value, path, "a list of texts");
}

/** All namespaces, the current one, or some by name. */
export function namespaces(
  value: unknown,
  path: string,
): string | readonly string[] {
  if (value === "all" || value === "current") return value;
  const names = typeof value === "string" ? value.split(",") : value;
  return isTexts(names)
    ? names
    : refuse(value, path, '"all", "current" or a list of names');
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) &&
    value.every((item) => typeof item === "string");
}
