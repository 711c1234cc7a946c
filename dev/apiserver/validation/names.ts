import { strictAddressProblems } from "./rules/value_problems.ts";
import type { NameRule } from "../registry.ts";

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE = `(${NAME_PART})?`;

/** Explanation of a failed regular expression, with examples, as Go's library writes it. */
function regexMessage(
  message: string,
  pattern: string,
  examples: readonly string[],
): string {
  return `${message} (e.g. ${
    examples.map((example) => `'${example}'`).join(",  or ")
  }, regex used for validation is '${pattern}')`;
}

/** Rule for a text: a maximum length and a regular expression. */
interface TextRule {
  /** Maximum number of characters. */
  readonly max: number;
  /** Unit of the maximum; characters if absent. */
  readonly unit?: string;
  /** Pattern of a whole text, without anchors. */
  readonly pattern: string;
  /** Message for a text that does not match. */
  readonly message: string;
  /** Texts that match, quoted in the message. */
  readonly examples: readonly string[];
}

/** Function that returns the violations of a rule by a text; empty for a valid text. */
type TextCheck = (text: string) => string[];

function textRule(
  { max, unit, pattern, message, examples }: TextRule,
): TextCheck {
  const whole = wholeText(pattern);
  const mismatch = regexMessage(message, pattern, examples);
  return (text) => [
    ...text.length > max ? [tooLong(max, unit)] : [],
    ...whole.test(text) ? [] : [mismatch],
  ];
}

function wholeText(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`);
}

function tooLong(limit: number, unit = "characters"): string {
  return `must be no more than ${limit} ${unit}`;
}

/** Check of a DNS-1123 subdomain such as `example.com`; returns the violations. */
export const subdomainProblems: TextCheck = textRule({
  max: 253,
  pattern: SUBDOMAIN,
  message:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  examples: ["example.com"],
});

/** Check of a DNS-1123 subdomain that may have underscores; returns the violations. */
export const underscoredSubdomainProblems: TextCheck = textRule({
  max: 253,
  pattern: `${LABEL_UNDERSCORE}(\\.${LABEL_UNDERSCORE})*`,
  message:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  examples: ["example.com"],
});

const LABEL_MESSAGE = regexMessage(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL,
  ["my-name", "123-abc"],
);
const LABEL_REGEXP = wholeText(LABEL);
const SUBDOMAIN_REGEXP = wholeText(SUBDOMAIN);

/** Checks a DNS-1123 label such as `my-name`; returns the violations. */
export function labelProblems(text: string): string[] {
  const problems = text.length > 63 ? [tooLong(63)] : [];
  if (LABEL_REGEXP.test(text)) return problems;
  // A label that would be a valid subdomain is wrong only because of its dots.
  const onlyDots = SUBDOMAIN_REGEXP.test(text);
  return [...problems, onlyDots ? "must not contain dots" : LABEL_MESSAGE];
}

/** Check of a DNS-1035 label, which starts with a letter; returns the violations. */
export const label1035Problems: TextCheck = textRule({
  max: 63,
  pattern: LABEL_1035,
  message:
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  examples: ["my-name", "abc-123"],
});

/** Check of the value of a label; returns the violations. */
export const labelValueProblems: TextCheck = textRule({
  max: 63,
  unit: "bytes",
  pattern: LABEL_VALUE,
  message:
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  examples: ["MyValue", "my_value", "12345"],
});

/** Checks a name that must only be a valid segment of a URL path; returns the violations. */
export function pathSegmentProblems(text: string): string[] {
  if (text === "." || text === "..") return [`may not be '${text}'`];
  return ["/", "%"].filter((part) => text.includes(part)).map((part) =>
    `may not contain '${part}'`
  );
}

const NAME_MESSAGE = regexMessage(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  NAME_PART,
  ["MyName", "my.name", "123-abc"],
);
const NAME_REGEXP = wholeText(NAME_PART);

/** Checks the name of a label, an annotation or a finalizer; returns the violations. */
export function qualifiedNameProblems(text: string): string[] {
  const problems: string[] = [];
  const parts = text.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2) {
    return [
      `a valid label key ${NAME_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  if (parts.length === 2) {
    const prefix = parts[0] ?? "";
    if (prefix === "") problems.push("prefix part must be non-empty");
    else {
      problems.push(
        ...subdomainProblems(prefix).map((problem) =>
          `prefix part ${problem.replace(/characters$/, "bytes")}`
        ),
      );
    }
  }
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push(`name part ${tooLong(63, "bytes")}`);
  if (!NAME_REGEXP.test(name)) problems.push(`name part ${NAME_MESSAGE}`);
  return problems;
}

/** Checks the name of an object by the rule of its kind; returns the violations. */
export function nameProblems(name: string, rule: NameRule): string[] {
  switch (rule) {
    case "dns-subdomain":
      return subdomainProblems(name);
    case "dns-label":
      return labelProblems(name);
    case "dns-1035-label":
      return label1035Problems(name);
    case "ip-address":
      return strictAddressProblems(name);
    case "path-segment":
      return pathSegmentProblems(name);
  }
}

const encoder = new TextEncoder();

/** Length of a text in UTF-8. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/**
 * Characters that the name of a field manager must not contain, with their
 * positions in bytes.
 */
export function oddCharacters(manager: string): string[] {
  // Almost all are printable ASCII.
  if (/^[ -~]*$/.test(manager)) return [];
  const odd: string[] = [];
  let position = 0;
  for (const character of manager) {
    if (/[\p{C}\p{Zl}\p{Zp}]|[^\S ]/u.test(character)) {
      const code = character.codePointAt(0)?.toString(16).toUpperCase();
      odd.push(`U+${code?.padStart(4, "0")} (at position ${position})`);
    }
    position += byteLength(character);
  }
  return odd;
}
