import { Buffer } from "node:buffer";
import type { JsonObject } from "@coracle/operator/internal";
import { holds, type RuleFunction } from "../../validation/rules/expression.ts";
import type { RuleText, Statement } from "../../validation/rules/rule_text.ts";

const NAME_PART = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const HOST_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
/** Image reference: host and port, path, tag and digest; only the path is required. */
const IMAGE = new RegExp(
  `^(?:${HOST_PART}(?:\\.${HOST_PART})*(?::[0-9]+)?/)?` +
    `${NAME_PART}(?:/${NAME_PART})*(?::(?<tag>[\\w][\\w.-]{0,127}))?` +
    "(?<digest>@[A-Za-z][\\w+.-]*:[0-9a-fA-F]{32,})?$",
);

/**
 * Default pull policy of an image: `Always` for the tag `latest` or no tag,
 * `IfNotPresent` otherwise and for malformed references.
 */
function pullPolicy(image = ""): "Always" | "IfNotPresent" {
  const { groups } = IMAGE.exec(image) ?? {};
  if (groups === undefined || groups["digest"]) return "IfNotPresent";
  return (groups["tag"] ?? "latest") === "latest" ? "Always" : "IfNotPresent";
}

/** Functions that default rules call. */
export const DEFAULT_FUNCTIONS: Readonly<Record<string, RuleFunction>> = {
  clientTimeout: (timeoutSeconds: number) => ({ clientIP: { timeoutSeconds } }),
  empty: () => ({}),
  encoded: (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(texts).map((
        [name, text],
      ) => [name, Buffer.from(text).toString("base64")]),
    ),
  hasOnlyName: (struct: object) =>
    Object.keys(struct).every((field) => field === "name"),
  isFilled: (map: object) => Object.keys(map).length > 0,
  json: JSON.parse,
  merged: (first?: object, second?: object) => ({ ...first, ...second }),
  pair: (key: string, value: string) => ({ [key]: value }),
  pullPolicy,
};

/** Compiles a line of a default rule that is not a control statement. */
export function defaultLine(line: string, rules: RuleText): Statement {
  const [, removes, path = "", sign = "", source] =
    /^(delete )?([\w.]+)(?: ([?|]?=) (.*))?$/.exec(line) ?? [];
  const dot = path.lastIndexOf(".");
  const struct = rules.expression(path.slice(0, Math.max(dot, 0)) || ".");
  const name = path.slice(dot + 1);
  if (!removes && source === undefined) {
    throw new SyntaxError(`Cannot compile a default: ${line}`);
  }
  const value = rules.expression(source ?? ".");
  return (scope) => {
    const target = struct(scope) as JsonObject | undefined;
    if (!target) return;
    const now = target[name] ?? undefined;
    if (removes) delete target[name];
    else if (
      sign === "=" || (sign === "|=" ? !holds(now) : now === undefined)
    ) target[name] = value(scope);
  };
}
