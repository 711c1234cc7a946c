import { fieldError } from "./status.ts";
import type { NameRule } from "./registry.ts";

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE = `(${NAME_PART})?`;

/** What regular expression messages say, with examples as Go's library does. */
function regexMessage(
  message: string,
  pattern: string,
  ...examples: readonly string[]
): string {
  return `${message} (e.g. ${
    examples.map((example) => `'${example}'`).join(",  or ")
  }${
    examples.length > 0 ? ", " : ""
  }regex used for validation is '${pattern}')`;
}

const COMPILED: ReadonlyMap<string, RegExp> = new Map(
  [LABEL, LABEL_1035, SUBDOMAIN, NAME_PART, LABEL_VALUE].map((
    pattern,
  ) => [pattern, new RegExp(`^(?:${pattern})$`)]),
);

function fits(pattern: string, text: string): boolean {
  return COMPILED.get(pattern)?.test(text) === true;
}

function tooLong(limit: number): string {
  return `must be no more than ${limit} characters`;
}

/** What is wrong with a DNS-1123 subdomain such as `example.com`. */
export function subdomainProblems(text: string): string[] {
  const problems: string[] = [];
  if (text.length > 253) problems.push(tooLong(253));
  if (!fits(SUBDOMAIN, text)) {
    problems.push(regexMessage(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
      SUBDOMAIN,
      "example.com",
    ));
  }
  return problems;
}

/** What is wrong with a DNS-1123 label such as `my-name`. */
export function labelProblems(text: string): string[] {
  const problems: string[] = [];
  if (text.length > 63) problems.push(tooLong(63));
  if (!fits(LABEL, text)) {
    // A name that would do as a subdomain is only told what it has too much.
    problems.push(
      fits(SUBDOMAIN, text) ? "must not contain dots" : regexMessage(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
        LABEL,
        "my-name",
        "123-abc",
      ),
    );
  }
  return problems;
}

/** What is wrong with a DNS-1035 label, which starts with a letter. */
export function label1035Problems(text: string): string[] {
  const problems: string[] = [];
  if (text.length > 63) problems.push(tooLong(63));
  if (!fits(LABEL_1035, text)) {
    problems.push(regexMessage(
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
      LABEL_1035,
      "my-name",
      "abc-123",
    ));
  }
  return problems;
}

/** What is wrong with a name that must only fit into a path. */
export function pathSegmentProblems(text: string): string[] {
  if (text === "." || text === "..") return [`may not be '${text}'`];
  return ["/", "%"].filter((part) => text.includes(part)).map((part) =>
    `may not contain '${part}'`
  );
}

/** What is wrong with the name of a label, an annotation or a finalizer. */
export function qualifiedNameProblems(text: string): string[] {
  const problems: string[] = [];
  const parts = text.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2) {
    return [
      `a qualified name ${
        regexMessage(
          "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
          NAME_PART,
          "MyName",
          "my.name",
          "123-abc",
        )
      } with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  if (parts.length === 2) {
    const prefix = parts[0] ?? "";
    if (prefix === "") problems.push("prefix part must be non-empty");
    else {
      problems.push(
        ...subdomainProblems(prefix).map((problem) => `prefix part ${problem}`),
      );
    }
  }
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push(`name part ${tooLong(63)}`);
  if (!fits(NAME_PART, name)) {
    problems.push(`name part ${
      regexMessage(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        NAME_PART,
        "MyName",
        "my.name",
        "123-abc",
      )
    }`);
  }
  return problems;
}

/** What is wrong with the value of a label. */
export function labelValueProblems(text: string): string[] {
  const problems: string[] = [];
  if (text.length > 63) problems.push(tooLong(63));
  if (!fits(LABEL_VALUE, text)) {
    problems.push(regexMessage(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
      LABEL_VALUE,
      "MyValue",
      "my_value",
      "12345",
    ));
  }
  return problems;
}

/** What is wrong with the name of an object under a rule. */
export function nameProblems(name: string, rule: NameRule): string[] {
  switch (rule) {
    case "dns-subdomain":
      return subdomainProblems(name);
    case "dns-label":
      return labelProblems(name);
    case "dns-1035-label":
      return label1035Problems(name);
    case "path-segment":
      return pathSegmentProblems(name);
  }
}

/** The problems of a field's value as causes. */
export function invalidCauses(
  field: string,
  value: unknown,
  problems: readonly string[],
): ReturnType<typeof fieldError.invalid>[] {
  return problems.map((problem) => fieldError.invalid(field, value, problem));
}
