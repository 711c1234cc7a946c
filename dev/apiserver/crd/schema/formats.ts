import { Buffer } from "node:buffer";
import { isIPv4, isIPv6 } from "node:net";
import { parseGoDuration } from "../../cel/go_time.ts";
import { requestUrlProblem } from "../../validation/request_url.ts";

/** Function that checks whether a text has a format. */
type FormatCheck = (text: string) => boolean;

/** Creates the check of a UUID with the given version and variant digits; dashes are optional. */
function uuid(version: string, variant: string): FormatCheck {
  const regexp = new RegExp(
    `^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`,
    "i",
  );
  return (text) => regexp.test(text);
}

function matching(regexp: RegExp): FormatCheck {
  return (text) => regexp.test(text);
}

const SHORT_NAME_REGEXP = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const LONG_NAME_REGEXP =
  /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Formats that kube-apiserver checks in custom resources, by name without
 * dashes; other formats are ignored.
 */
const FORMATS: ReadonlyMap<string, FormatCheck> = new Map<string, FormatCheck>([
  ["bsonobjectid", matching(/^[0-9a-f]{24}$/i)],
  [
    "byte",
    matching(
      /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/,
    ),
  ],
  ["cidr", isCidr],
  ["creditcard", isCreditCard],
  ["date", isDate],
  ["datetime", isDateTime],
  ["duration", (text) => durationNanos(text) !== undefined],
  ["email", isEmail],
  ["hexcolor", matching(/^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i)],
  ["hostname", isHostname],
  ["ipv4", isIpv4],
  ["ipv6", (text) => isIPv6(text) && !text.includes("%")],
  ["isbn", (text) => isIsbn10(text) || isIsbn13(text)],
  ["isbn10", isIsbn10],
  ["isbn13", isIsbn13],
  [
    "k8slongname",
    (text) => text.length <= 253 && LONG_NAME_REGEXP.test(text),
  ],
  [
    "k8sshortname",
    (text) => text.length <= 63 && SHORT_NAME_REGEXP.test(text),
  ],
  [
    "mac",
    matching(
      /^(?:[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}(?:(?:\1[0-9a-f]{2}){2}|(?:\1[0-9a-f]{2}){14})?|(?:[0-9a-f]{4}\.){2,3}[0-9a-f]{4}|(?:[0-9a-f]{4}\.){9}[0-9a-f]{4}|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40})$/i,
    ),
  ],
  ["password", () => true],
  ["rgbcolor", isRgbColor],
  ["ssn", matching(/^\d{3}[- ]\d{2}[- ]\d{4}$/)],
  ["uri", (text) => requestUrlProblem(text) === undefined],
  ["uuid", uuid("[0-9a-f]", "[0-9a-f]")],
  ["uuid3", uuid("3", "[0-9a-f]")],
  ["uuid4", uuid("4", "[89ab]")],
  ["uuid5", uuid("5", "[89ab]")],
]);

/** Whether kube-apiserver checks the format. */
export function isKnownFormat(format: string): boolean {
  return FORMATS.has(format.replaceAll("-", ""));
}

/** Whether the text has the format; true if the format is not checked. */
export function matchesFormat(format: string, text: string): boolean {
  return FORMATS.get(format.replaceAll("-", ""))?.(text) ?? true;
}

function isDate(text: string): boolean {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (parts === null) return false;
  const [year = 0, month = 0, day = 0] = parts.slice(1).map(Number);
  const date = new Date(Date.UTC(2000, month - 1, day));
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day &&
    month >= 1;
}

/**
 * Whether a text is a time with seconds and offset (RFC 3339); as upstream, any
 * character may precede a fraction.
 */
function isDateTime(text: string): boolean {
  const [date = "", time] = text.toLowerCase().split("t");
  if (time === undefined || !isDate(date)) return false;
  const parts = /^(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})$/.exec(
    time,
  );
  return parts !== null && String(parts[1]) <= "23" &&
    String(parts[2]) <= "59" && String(parts[3]) <= "59";
}

/**
 * Units of durations in words, by their names, and their nanoseconds; the last name
 * of a unit may be the start of a longer one, such as `days`.
 */
const UNITS: readonly (readonly [names: readonly string[], nanos: bigint])[] = [
  [["ns", "nano"], 1n],
  [["us", "µs", "micro"], 1_000n],
  [["ms", "milli"], 1_000_000n],
  [["s", "sec"], 1_000_000_000n],
  [["m", "min"], 60_000_000_000n],
  [["h", "hr", "hour"], 3_600_000_000_000n],
  [["d", "day"], 86_400_000_000_000n],
  [["w", "wk", "week"], 604_800_000_000_000n],
];

const MOST = 2n ** 63n - 1n;

/**
 * Nanoseconds of a duration in Go's syntax, or in words such as `2 days`; undefined
 * if the text is no duration. As upstream, words have whole numbers without sign, unknown
 * ones do not count, and the sum wraps around at 64 bits.
 */
export function durationNanos(text: string): bigint | undefined {
  const nanos = parseGoDuration(text);
  if (nanos !== undefined) return nanos;
  let total: bigint | undefined;
  for (
    const [, digits = "", word = ""] of text.matchAll(
      /(\d+)[\t\n\f\r ]*([A-Za-zµ]+)/g,
    )
  ) {
    const amount = BigInt(digits);
    if (amount > MOST) return undefined;
    const size = unitOf(word.toLowerCase());
    if (size !== undefined) total = (total ?? 0n) + amount * size;
  }
  return total === undefined ? undefined : BigInt.asIntN(64, total);
}

function unitOf(word: string): bigint | undefined {
  return UNITS.find(([names]) =>
    names.includes(word) || word.startsWith(names.at(-1) ?? "")
  )?.[1];
}

/** Whether a text is an email address (RFC 5322), with or without a display name. */
function isEmail(text: string): boolean {
  const bracketed = /^(?:[^<>@]*)<([^<>]+)>$/.exec(text.trim());
  const address = bracketed?.[1] ?? text.trim();
  return /^(?:[\w!#$%&'*+\-/=?^`{|}~\u0080-\uFFFF]+(?:\.[\w!#$%&'*+\-/=?^`{|}~\u0080-\uFFFF]+)*|"(?:[^"\\]|\\.)*")@(?:[\w!#$%&'*+\-/=?^`{|}~\u0080-\uFFFF]+(?:\.[\w!#$%&'*+\-/=?^`{|}~\u0080-\uFFFF]+)*|\[[^\]]*\])$/
    .test(address);
}

const HOSTNAME_REGEXP =
  /^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$/u;

function isHostname(text: string): boolean {
  return HOSTNAME_REGEXP.test(text) && Buffer.byteLength(text) <= 255 &&
    text.split(".").every((label) => Buffer.byteLength(label) <= 63);
}

function isCidr(text: string): boolean {
  const [address = "", length = "", ...rest] = text.split("/");
  if (rest.length > 0 || !/^\d+$/.test(length)) return false;
  if (isIPv4(withoutLeadingZeros(address))) return Number(length) <= 32;
  return isIPv6(address) && !address.includes("%") && Number(length) <= 128;
}

/** Whether a text is an IPv4 address, also as one of IPv6. */
function isIpv4(text: string): boolean {
  return isIPv4(withoutLeadingZeros(text)) ||
    isIPv6(text) && text.includes(".") && !text.includes("%");
}

/** IPv4 address without leading zeros, which kube-apiserver still accepts. */
function withoutLeadingZeros(address: string): string {
  return address.replace(/\b0+(?=\d)/g, "");
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]+/g, "");
  if (
    !/^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$/
      .test(digits)
  ) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const doubled = index % 2 === 1 ? Number(digit) * 2 : Number(digit);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0;
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^(?:\d{9}X|\d{10})$/.test(digits)) return false;
  const sum = [...digits].reduce(
    (total, digit, index) =>
      total + (index + 1) * (digit === "X" ? 10 : Number(digit)),
    0,
  );
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, "");
  if (!/^\d{13}$/.test(digits)) return false;
  const sum = [...digits].reduce(
    (total, digit, index) => total + (index % 2 === 1 ? 3 : 1) * Number(digit),
    0,
  );
  return sum % 10 === 0;
}

function isRgbColor(text: string): boolean {
  const parts = /^rgb\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)$/.exec(text);
  return parts !== null &&
    parts.slice(1).every((part) =>
      /^(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])$/.test(part)
    );
}
