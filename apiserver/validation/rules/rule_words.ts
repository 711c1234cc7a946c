import { jsonEquals } from "../../../core/patch/json_value.ts";
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
import { type Expression, ExpressionParser, holds } from "./expression.ts";
import type { RuleText, Statement } from "./rule_text.ts";
import type { Scope } from "./scope.ts";
import { checkAnnotations, checkLabels } from "./label_rules.ts";
import {
  addressProblems,
  configKeyProblems,
  intOrPercentProblems,
  intOrPercentValue,
  networkProblems,
  portNameProblems,
  portProblems,
  strictAddressProblems,
  strictNetworkProblems,
} from "./value_problems.ts";

/** Formats of statements `PATH is FORMAT`; each returns the violations of a value. */
export const FORMATS: Readonly<
  Record<string, (value: never) => readonly string[]>
> = {
  address: addressProblems,
  configKey: configKeyProblems,
  joinedLabel: (text: string) => joined(label1035Problems(text)),
  kind: (kind: string) =>
    joined(label1035Problems(kind.toLowerCase())).map((why) =>
      `may have mixed case, but should otherwise match: ${why}`
    ),
  label: labelProblems,
  label1035: label1035Problems,
  labelValue: labelValueProblems,
  network: networkProblems,
  pathSegment: pathSegmentProblems,
  port: (port: number | string) =>
    typeof port === "string" ? portNameProblems(port) : portProblems(port),
  qualifiedName: qualifiedNameProblems,
  relativePath: (path: string) => [
    ...path.startsWith("/") ? ["must be a relative path"] : [],
    ...path.split("/").includes("..") ? ["must not contain '..'"] : [],
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

/** Joins several messages of violations into one. */
function joined(problems: readonly string[]): string[] {
  return problems.length === 0 ? [] : [problems.join(",")];
}

/** Parsed line about a field. */
interface Subject {
  /** Parent path and relative path of the reported field. */
  readonly in: (scope: Scope) => readonly [at: FieldPath, below: string];
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
    in: (scope) => {
      let at = scope;
      for (const _ of carets) at = at.outer as Scope;
      return [at.path, below(scope)];
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

type Report = (
  place: { readonly at: FieldPath; readonly below: string },
  value: unknown,
  text: string,
) => void;

/** Statements that report a violation: `WORD PATH [= VALUE] [shown TEXT]: why`. */
const REPORTS: Readonly<Record<string, Report>> = {
  duplicate: ({ at, below }, value) => at.duplicate(below, value),
  forbidden: ({ at, below }, _, why) => at.forbidden(below, why),
  invalid: ({ at, below }, value, why) => at.invalid(below, value, why),
  invalidAs: ({ at, below }, _, why) =>
    at.violation(below, "FieldValueInvalid", `Invalid value: ${why}`),
  missing: ({ at, below }, _, why) => at.required(below, why),
  notFound: ({ at, below }, value) => at.notFound(below, value),
  tooLong: ({ at, below }, _, limit) => at.tooLong(below, Number(limit)),
  tooMany: ({ at, below }, count, limit) =>
    at.tooMany(below, Number(count), Number(limit)),
  unsupported: ({ at, below }, value, choices) =>
    at.notSupported(below, value, choices.split(", ")),
};

/** Statements that check a field: `PATH WORD …`. */
const CHECKS: Readonly<Record<string, (subject: Subject) => Statement>> = {
  /** Statement `PATH required: why`: the field must be set and not be empty. */
  required: (subject) => (scope) => {
    if (holds(subject.value(scope))) return;
    const [at, below] = subject.in(scope);
    at.required(below, subject.why(scope));
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
        if (mark !== "!") return;
        const [at, below] = subject.in(scope);
        at.required(below);
        return;
      }
      const found = problems(value as never);
      if (found.length === 0) return;
      const [at, below] = subject.in(scope);
      at.problems(below, value, found);
    };
  },
  /** Statement `PATH between LOW HIGH`: checks a field if it is set; both ends are included. */
  between: (subject) => {
    const [low = 0, high = 0] = subject.words.slice(1).map(Number);
    return (scope) => {
      const value = subject.value(scope);
      if (value === undefined) return;
      if (value as number >= low && value as number <= high) return;
      const [at, below] = subject.in(scope);
      at.invalid(below, value, `must be between ${low} and ${high}, inclusive`);
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
    const [at, below] = subject.in(scope);
    at.notSupported(below, value, choices);
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
  const [at, below] = subject.in(scope);
  if (typeof value === "number") {
    at.problems(below, value, intOrPercentProblems(value));
    return;
  }
  const problems = intOrPercentProblems(value);
  if (intOrPercentValue(value) > limit) {
    problems.push(`must not be greater than ${limit}%`);
  }
  for (const problem of problems) {
    at.invalid(below, value, problem);
  }
}

/** Compiles a line of a validation rule that is not a control statement. */
export function validationLine(line: string, rules: RuleText): Statement {
  const [word = "", ...rest] = line.split(" ");
  const text = rest.join(" ");
  switch (word) {
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
      return ({ value, path }) =>
        path.notNegative(value as never, ...rest as never[]);
    case "immutable":
      return changed(
        rest,
        rules,
        (path, value, below) =>
          path.invalid(below, value, "field is immutable"),
      );
    case "unchanged": {
      // Like `immutable`, reported as forbidden.
      const [field = "", why = ""] = text.split(": ");
      return changed(
        [field],
        rules,
        (path, _, below) => path.forbidden(below, why),
      );
    }
    case "one": {
      // `one NAMES: missing | extra`: of the fields that are set, one is allowed.
      const parser = new ExpressionParser(text, rules.functions);
      const value = parser.parse();
      const [, missing = "", extra = ""] =
        /^: (.*?) ?\| (.*)$/.exec(parser.rest) ?? [];
      return (scope) => {
        const found = value(scope) as readonly string[];
        if (found.length === 0 && missing) scope.path.required("", missing);
        for (const field of found.slice(1)) scope.path.forbidden(field, extra);
      };
    }
    case "unique":
    case "distinct": {
      // Both report a value that an earlier item had; `unique` skips empty ones.
      const { value, in: place } = subjectOf(text, rules);
      return (scope) => {
        const found = value(scope);
        if (word === "unique" && !holds(found)) return;
        if (!scope.seen(value, found)) return;
        const [at, below] = place(scope);
        at.duplicate(below, found);
      };
    }
  }
  if (Object.hasOwn(REPORTS, word)) {
    const report = REPORTS[word] as Report;
    const { in: place, value, shown, why } = subjectOf(text, rules, {
      needsValue: !/^(?:forbidden|invalidAs|missing|tooLong)$/.test(word),
    });
    return (scope) => {
      const [at, below] = place(scope);
      if (!shown) report({ at, below }, value(scope), why(scope));
      else {
        const [reason, what] = SHOWN_VIOLATIONS[word] ?? [];
        const text = [what, shown(scope), why(scope)].filter(Boolean);
        at.violation(below, reason ?? "", text.join(": "));
      }
    };
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
  report: (
    path: FieldPath,
    value: unknown,
    below: string,
    scope: Scope,
  ) => void,
): Statement {
  const values = fields.map((field) =>
    [
      field,
      rules.expression(field),
      rules.expression(`$live.${field}`),
    ] as const
  );
  return (scope) => {
    for (const [field, now, before] of values) {
      const value = now(scope);
      if (!jsonEquals(value, before(scope))) {
        report(scope.path, value, field, scope);
      }
    }
  };
}
