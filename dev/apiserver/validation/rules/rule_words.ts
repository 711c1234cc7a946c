import { jsonEquals } from "@coracle/operator/internal";
import type { FieldPath } from "../field_path.ts";
import {
  label1035Problems,
  labelProblems,
  labelValueProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
  subdomainProblems,
  underscoredSubdomainProblems,
} from "../names.ts";
import {
  type Expression,
  ExpressionParser,
  holds,
  member,
} from "./expression.ts";
import type { RuleText, Statement } from "./rule_text.ts";
import { Scope } from "./scope.ts";
import { checkAnnotations, checkLabels } from "./label_rules.ts";
import {
  configKeyProblems,
  intOrPercentProblems,
  intOrPercentValue,
  plainAddressProblems,
  plainNetworkProblems,
  portNameProblems,
  portProblems,
  strictAddressProblems,
  strictNetworkProblems,
} from "./value_problems.ts";

/** Formats of statements `PATH is FORMAT`; each returns the violations of a value. */
export const FORMATS: Readonly<
  Record<string, (value: never) => readonly string[]>
> = {
  address: plainAddressProblems,
  configKey: configKeyProblems,
  joinedLabel: (text: string) => joined(label1035Problems(text)),
  kind: (kind: string) =>
    joined(label1035Problems(kind.toLowerCase())).map((why) =>
      `may have mixed case, but should otherwise match: ${why}`
    ),
  label: labelProblems,
  label1035: label1035Problems,
  labelValue: labelValueProblems,
  network: plainNetworkProblems,
  pathSegment: pathSegmentProblems,
  port: (port: number | string) =>
    typeof port === "string" ? portNameProblems(port) : portProblems(port),
  qualifiedName: qualifiedNameProblems,
  /** Label of a declared rule, whose limit is in bytes. */
  shortName: (text: string) =>
    labelProblems(text).map((why) => why.replace(/ characters$/, " bytes")),
  /** Subdomain in letters of any case. */
  longName: (name: string) =>
    subdomainProblems(name.toLowerCase()).map((why) =>
      why.replace("a lowercase RFC", "an RFC").replace("lower case ", "")
        .replace("'example.com'", "'Example.com'")
    ),
  relativePath: pathProblems,
  /** Relative path of a file that a volume has, beside its own. */
  filePath: (path: string) => [
    ...pathProblems(path),
    ...path.startsWith("..") && !path.startsWith("../")
      ? ["must not start with '..'"]
      : [],
  ],
  fileMode: (mode: number) =>
    mode >= 0 && mode <= 0o777
      ? []
      : ["must be a number between 0 and 0777 (octal), both inclusive"],
  lowerSubdomain: (name: string) => subdomainProblems(name.toLowerCase()),
  simplePath: (path: string) =>
    path.startsWith(".") ? [] : ["must be a simple json path starting with ."],
  strictAddress: strictAddressProblems,
  strictNetwork: strictNetworkProblems,
  subdomain: subdomainProblems,
  underscoredSubdomain: underscoredSubdomainProblems,
};

function pathProblems(path: string): string[] {
  return [
    ...path.startsWith("/") ? ["must be a relative path"] : [],
    ...path.split("/").includes("..") ? ["must not contain '..'"] : [],
  ];
}

/** Joins several messages of violations into one. */
function joined(problems: readonly string[]): string[] {
  return problems.length === 0 ? [] : [problems.join(",")];
}

/** Parsed line about a field. */
interface Subject {
  /** Path of the reported field. */
  readonly at: (scope: Scope) => FieldPath;
  readonly value: Expression;
  /** Value in Go's notation, from the text after `shown`. */
  readonly shown: Expression | undefined;
  /** Text after the colon: the message. */
  readonly why: (scope: Scope) => string;
  /** Rest of the line, without the text after the colon. */
  readonly words: readonly string[];
}

/** Parses a line `PATH WORDS… [= VALUE] [WORDS…] [shown TEXT] [: why]`. */
function subjectOf(
  text: string,
  rules: RuleText,
  { needsValue = true }: { readonly needsValue?: boolean } = {},
): Subject {
  const [, path = "", rest = ""] = /^(\S+?)(?=:? |:?$)(.*)$/.exec(text) ?? [];
  const [, first = "", tail = ""] = /^([^:=]*?)((?: = | shown |:).*)?$/
    .exec(rest) ?? [];
  const [, carets = "", name = ""] = /^(\^*)(.*)$/.exec(path) ?? [];
  const below = rules.template(name === "." ? "" : name);
  let left = tail;
  const after = (mark: string): Expression | undefined => {
    if (!left.startsWith(mark)) return undefined;
    const parser = new ExpressionParser(left, rules.functions, mark.length);
    const value = parser.parse();
    left = ` ${parser.rest}`;
    return value;
  };
  const given = after(" = ");
  const shown = after(" shown ");
  const [, last = "", why = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(left) ?? [];
  const none = () => undefined;
  return {
    at: (scope) => {
      let from = scope;
      for (const _ of carets) from = from.outer as Scope;
      return from.path.child(below(scope));
    },
    value: given ?? (needsValue && !shown ? rules.expression(path) : none),
    shown,
    why: rules.template(why),
    words: (first.trim() || last.trim()).split(" "),
  };
}

/** Reason and message of violations whose value a rule formats itself. */
const SHOWN_VIOLATIONS: Readonly<Record<string, readonly [string, string]>> = {
  duplicate: ["FieldValueDuplicate", "Duplicate value"],
  invalid: ["FieldValueInvalid", "Invalid value"],
  unsupported: ["FieldValueNotSupported", "Unsupported value"],
};

/** Statements that report a violation: `WORD PATH [= VALUE] [shown TEXT]: why`. */
const REPORTS: Readonly<
  Record<string, (at: FieldPath, value: unknown, text: string) => void>
> = {
  duplicate: (at, value) => at.add("duplicate", value),
  forbidden: (at, _, why) => at.add("forbidden", why),
  invalid: (at, value, why) => at.add("invalid", value, why),
  invalidAs: (at, _, why) => reportShown(at, "invalid", [why]),
  missing: (at, _, why) => at.add("required", why),
  notFound: (at, value) => at.add("notFound", value),
  tooLong: (at, _, limit) => {
    const [count, unit] = limit.split(" ");
    at.add("tooLong", Number(count), unit);
  },
  tooMany: (at, count, limit) =>
    at.add("tooMany", Number(count), Number(limit)),
  unsupported: (at, value, choices) =>
    at.add("notSupported", value, choices.split(", ")),
};

function reportShown(
  at: FieldPath,
  word: string,
  texts: readonly string[],
): void {
  const [reason = "", what = ""] = SHOWN_VIOLATIONS[word] ?? [];
  const message = [what, ...texts].filter(Boolean).join(": ");
  at.report([{ reason, message, field: at.path }]);
}

/** Statements that check a field: `PATH WORD …`. */
const CHECKS: Readonly<Record<string, (subject: Subject) => Statement>> = {
  /** Statement `PATH required: why`: the field must be set and not be empty. */
  required: (subject) => (scope) => {
    if (holds(subject.value(scope))) return;
    subject.at(scope).add("required", subject.why(scope));
  },
  /**
   * Statement `PATH is FORMAT`: checks a field if it is set, `FORMAT?` if it is
   * not empty; `FORMAT!` also requires it.
   */
  is: (subject) => {
    const [, word = "", mark = ""] = /^(\w*)([?!]?)$/
      .exec(subject.words[1] ?? "") ?? [];
    const problems = FORMATS[word];
    if (!problems) throw new SyntaxError(`Cannot find a format: ${word}`);
    return (scope) => {
      const value = subject.value(scope);
      if (mark === "" ? value === undefined : !holds(value)) {
        if (mark === "!") subject.at(scope).add("required");
        return;
      }
      const found = problems(value as never);
      if (found.length > 0) subject.at(scope).problems(value, found);
    };
  },
  /** Statement `PATH between LOW HIGH`: checks a field if it is set; both ends are included. */
  between: (subject) => {
    const [low = 0, high = 0] = subject.words.slice(1).map(Number);
    return (scope) => {
      const value = subject.value(scope);
      if (value === undefined) return;
      if (value as number >= low && value as number <= high) return;
      const why = `must be between ${low} and ${high}, inclusive`;
      subject.at(scope).add("invalid", value, why);
    };
  },
  intOrPercent: (subject) => (scope) =>
    checkIntOrPercent(subject, scope, Infinity),
  percent: (subject) => (scope) => checkIntOrPercent(subject, scope, 100),
  /** Statement `PATH of: A, B`: the field must be one of these texts; an absent field counts as empty. */
  of: (subject) => (scope) => {
    const choices = subject.why(scope).split(", ");
    const value = subject.value(scope) ?? "";
    if (choices.includes(value as string)) return;
    subject.at(scope).add("notSupported", value, choices);
  },
};

/** Checks a number or percentage (`IntOrString`), which may have a limit. */
function checkIntOrPercent(
  subject: Subject,
  scope: Scope,
  limit: number,
): void {
  const value = subject.value(scope) as number | string | undefined;
  if (value === undefined) return;
  const problems = intOrPercentProblems(value);
  if (typeof value === "string" && intOrPercentValue(value) > limit) {
    problems.push(`must not be greater than ${limit}%`);
  }
  if (problems.length > 0) subject.at(scope).problems(value, problems);
}

/** Compiles a line of a validation rule that is not a control statement. */
export function validationLine(line: string, rules: RuleText): Statement {
  const [word = "", ...rest] = line.split(" ");
  const text = rest.join(" ");
  switch (word) {
    case "declared": {
      // `declared RULE`: from 1.37 its violations follow those of other rules.
      const rule = validationLine(text, rules);
      return (scope) => {
        const { declared } = scope.path;
        return rule(
          declared === scope.path
            ? scope
            : new Scope(scope.value, declared, scope),
        );
      };
    }
    case "labels":
    case "annotations": {
      const check = word === "labels" ? checkLabels : checkAnnotations;
      const value = rules.expression(rest[0] ?? "");
      const below = rest[1] ?? rest[0] ?? "";
      return (scope) => {
        const labels = value(scope) as Record<string, string> | undefined;
        if (labels) check(labels, scope.path.child(below));
      };
    }
    case "notNegative":
      return (scope) => {
        for (const field of rest) {
          const number = member(scope.value, field);
          if (typeof number !== "number" || number >= 0) continue;
          const why = "must be greater than or equal to 0";
          scope.path.child(field).add("invalid", number, why);
        }
      };
    case "immutable":
      return changed(
        rest,
        rules,
        (at, value) => at.add("invalid", value, "field is immutable"),
      );
    case "unchanged": {
      // Like `immutable`, reported as forbidden.
      const [field = "", why = ""] = text.split(": ");
      return changed([field], rules, (at) => at.add("forbidden", why));
    }
    case "one": {
      // `one NAMES: missing | extra`: of the fields that are set, one is allowed.
      const parser = new ExpressionParser(text, rules.functions);
      const value = parser.parse();
      const [, missing = "", extra = ""] =
        /^: (.*?) ?\| (.*)$/.exec(parser.rest) ?? [];
      return (scope) => {
        const found = value(scope) as readonly string[];
        const { path } = scope;
        if (found.length === 0 && missing) path.add("required", missing);
        for (const field of found.slice(1)) {
          path.child(field).add("forbidden", extra);
        }
      };
    }
    case "unique":
    case "distinct": {
      // Both report a value that an earlier item had; `unique` skips empty ones.
      const { value, at } = subjectOf(text, rules);
      return (scope) => {
        const found = value(scope);
        if (word === "unique" && !holds(found)) return;
        if (scope.seen(value, found)) at(scope).add("duplicate", found);
      };
    }
  }
  const report = Object.hasOwn(REPORTS, word) ? REPORTS[word] : undefined;
  if (report) {
    const { at, value, shown, why } = subjectOf(text, rules, {
      needsValue: !/^(?:forbidden|invalidAs|missing|tooLong)$/.test(word),
    });
    return shown
      ? (scope) =>
        reportShown(at(scope), word, [shown(scope) as string, why(scope)])
      : (scope) => report(at(scope), value(scope), why(scope));
  }
  const subject = subjectOf(line, rules);
  const check = CHECKS[subject.words[0] ?? ""];
  if (!check) throw new SyntaxError(`Cannot compile a rule: ${line}`);
  return check(subject);
}

/** Reports the fields whose values differ from those of `$live`. */
function changed(
  fields: readonly string[],
  rules: RuleText,
  report: (at: FieldPath, value: unknown) => void,
): Statement {
  const values = fields.map((field) => ({
    field,
    now: rules.expression(field),
    before: rules.expression(`$live.${field}`),
  }));
  return (scope) => {
    for (const { field, now, before } of values) {
      const value = now(scope);
      if (jsonEquals(value, before(scope))) continue;
      report(scope.path.child(field), value);
    }
  };
}
