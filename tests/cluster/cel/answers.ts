/**
 * Answers to questions about CEL expressions: those of the embedded server, in the
 * form in which the program `cmd/cel` gives the ones of kube-apiserver.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { OpenApiSchema } from "@coracle/operator/core";
import type { ValidationRule } from "@coracle/operator/crd";
import { CelError } from "../../../dev/apiserver/cel/cel_errors.ts";
import { costOf } from "../../../dev/apiserver/cel/cost_estimate.ts";
import { Environment } from "../../../dev/apiserver/cel/environment.ts";
import {
  Duration,
  isMap,
  Optional,
  Timestamp,
  typeNameOf,
  TypeValue,
  Uint,
} from "../../../dev/apiserver/cel/values.ts";
import {
  declaredType,
  sizesOf,
} from "../../../dev/apiserver/crd/cel/declared_type.ts";
import {
  CALL_LIMIT,
  compileNodeRules,
} from "../../../dev/apiserver/crd/cel/rule_compiler.ts";
import { compileRules } from "../../../dev/apiserver/crd/cel/rule_validator.ts";
import {
  dynamic,
  SchemaTypes,
} from "../../../dev/apiserver/crd/cel/schema_values.ts";
import { PolicyEnvironment } from "../../../dev/apiserver/admission/policy_environment.ts";

/** Question about an expression. */
export interface Question {
  /** Where the expression stands; alone by default. */
  readonly mode?: "expression" | "rule" | "policy";
  readonly expression?: string;
  /** Rule, with the schema of its node and values that it validates. */
  readonly rule?: ValidationRule;
  readonly schema?: OpenApiSchema;
  /** Whether the schema is that of a whole object. */
  readonly root?: boolean;
  readonly value?: unknown;
  readonly old?: unknown;
  /** Whether the expression is that of a mutation. */
  readonly mutation?: boolean;
  /** Values of the variables of a policy. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** Answer to a question. */
export interface Answer {
  /** Compile error. */
  readonly error?: string;
  /** Name of the type of the expression. */
  readonly type?: string;
  /** Greatest cost, as estimated. */
  readonly max?: number;
  /** Cost of the evaluation. */
  readonly cost?: number;
  readonly value?: string;
  /** Error of the evaluation. */
  readonly failed?: string;
  /** Violations of a rule. */
  readonly causes?: readonly string[];
}

const ALONE = new Environment();
const POLICY = new PolicyEnvironment({ paramKind: {} });

/** Answer of the embedded server. */
export function answerTo(question: Question): Answer {
  switch (question.mode) {
    case "rule":
      return ruleAnswer(question);
    case "policy":
      return policyAnswer(question);
    default:
      return expressionAnswer(question);
  }
}

function shortError(error: string): string {
  return error.replace(/^compilation failed: /, "")
    .replace(/^program instantiation failed: /, "program: ");
}

function expressionAnswer({ expression = "" }: Question): Answer {
  const compiled = ALONE.compile(expression);
  if ("error" in compiled) return { error: shortError(compiled.error) };
  const max = costOf(compiled.root, () => undefined);
  const { value, cost } = compiled.program({}, CALL_LIMIT);
  return { type: compiled.typeName, max, cost, ...result(value) };
}

function result(value: unknown): Answer {
  return value instanceof CelError
    ? { failed: value.message }
    : { value: text(value) };
}

function ruleAnswer(
  { rule, schema = {}, root = false, value, old }: Question,
): Answer {
  const node: OpenApiSchema = rule
    ? { ...schema, "x-kubernetes-validations": [rule] }
    : schema;
  const known = new SchemaTypes().of(node, root);
  const declared = declaredType(node, root);
  if (known === undefined || declared === undefined) {
    return { error: "failed to convert to declType for CEL validation rules" };
  }
  let error = "";
  let max = 0;
  for (const compiled of compileNodeRules(node, known.type)) {
    if (compiled.error) error = compiled.error;
    error += compiled.messageError ?? "";
    if (compiled.tree) max = costOf(compiled.tree, sizesOf(declared));
  }
  if (error !== "") return { error, max };
  if (value === undefined) return { max };
  const causes = compileRules(node, root)?.validate(value, old) ?? [];
  if (causes.length === 0) return { max };
  return {
    max,
    causes: causes.map(({ field, message }) =>
      `${field || "<nil>"}: ${message}`
    ),
  };
}

function policyAnswer(
  { expression = "", mutation = false, variables }: Question,
): Answer {
  const compiled = mutation
    ? POLICY.compileMutation(expression, [])
    : POLICY.compile(expression);
  if (compiled.error !== undefined) {
    return { error: compiled.error.replace(/^compilation failed: /, "") };
  }
  if (variables === undefined) return { type: compiled.typeName };
  const { value, cost } = compiled.program(
    Object.fromEntries(
      Object.entries(variables).map(([name, one]) => [name, dynamic(one)]),
    ),
    CALL_LIMIT,
  );
  return { type: compiled.typeName, cost, ...result(value) };
}

/** Value in the notation of the program. */
function text(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "boolean" || typeof value === "bigint") {
    return String(value);
  }
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return `double(${doubleText(value)})`;
  if (value instanceof Uint) return `${value.value}u`;
  if (value instanceof Uint8Array) {
    return `bytes(${
      [...value].map((byte) => byte.toString(16).padStart(2, "0")).join("")
    })`;
  }
  if (value instanceof Timestamp) {
    const seconds = value.nanos >= 0n
      ? value.nanos / NANOS
      : -((-value.nanos + NANOS - 1n) / NANOS);
    const rest = String(value.nanos - seconds * NANOS).padStart(9, "0");
    return `timestamp(${seconds}.${rest})`;
  }
  if (value instanceof Duration) return `duration(${value.nanos})`;
  if (value instanceof TypeValue) return `type(${value.name})`;
  if (value instanceof Optional) {
    return value.value === undefined ? "none" : `some(${text(value.value)})`;
  }
  if (Array.isArray(value)) return `[${value.map(text).join(", ")}]`;
  if (typeNameOf(value) === "map" && isMap(value)) {
    const entries = value.keys()
      .map((key) => `${text(key)}: ${text(value.find(key))}`);
    return `{${entries.sort(byBytes).join(", ")}}`;
  }
  return typeNameOf(value);
}

const NANOS = 1_000_000_000n;

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function doubleText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (Object.is(value, -0)) return "-0";
  return value.toExponential()
    .replace(/e([+-])(\d)$/, "e$10$2");
}

const COSTS: readonly (keyof Answer)[] = ["max", "cost"];
const TEXTS: readonly (keyof Answer)[] = [
  "error",
  "type",
  "value",
  "failed",
  "causes",
];

/**
 * Differences between an answer and that of kube-apiserver. Names of types that
 * differ from compile to compile, costs of expressions that do not compile, and
 * what the real server does not survive do not count.
 */
export function differences(ours: Answer, real: Answer): string[] {
  if (/^(?:panic|internal error)/.test(real.failed ?? "")) return [];
  const shown = (value: unknown) =>
    (JSON.stringify(value) ?? "nothing").replaceAll(
      /selfType\d+/g,
      "selfType0",
    );
  const found = TEXTS.filter((name) => shown(ours[name]) !== shown(real[name]));
  if (found.length === 0 && real.error === undefined) {
    found.push(...COSTS.filter((name) => {
      if (ours[name] === undefined) return false;
      const [a, b] = [Number(ours[name]), Number(real[name] ?? 0)];
      // Beyond 2^53 numbers are inexact.
      return Math.abs(a - b) > b * 1e-9;
    }));
  }
  return found.map((name) =>
    `${name}: ${shown(ours[name])} instead of ${shown(real[name])}`
  );
}
