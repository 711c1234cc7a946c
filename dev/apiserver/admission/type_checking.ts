import {
  type OpenApiSchema,
  parseApiVersion,
} from "@coracle/operator/internal";
import type { ExpressionWarning } from "@coracle/operator/kinds";
import type { Schema } from "../merge/schema.ts";
import { loadPatterns } from "../cel/pattern.ts";
import type { Resources } from "../resources.ts";
import { PolicyEnvironment } from "./policy_environment.ts";
import type { PolicyHook, PolicySpec } from "./hooks.ts";
import { apiVersionIn, type View } from "../storage/object_view.ts";

/** Maximum number of kinds that a policy is checked against. */
const MAX_KINDS = 10;

/** Maximum depth of the types of an object; deeper values have any type. */
const MAX_DEPTH = 12;

/** Checks the validations of a policy against the kinds that its rules name. */
export async function expressionWarnings(
  { spec }: Pick<PolicyHook, "spec">,
  resources: Resources,
): Promise<readonly ExpressionWarning[]> {
  await loadPatterns();
  const params = paramsSchema(spec, resources);
  const kinds = kindsOf(spec, resources).map((view) => {
    const object = typed(view.version.schema, 0);
    return {
      name: `${apiVersionIn(view)}, Kind=${view.definition.kind}`,
      environment: new PolicyEnvironment(spec, { object, params }),
    };
  });
  const warnings: ExpressionWarning[] = [];
  for (const [index, validation] of (spec.validations ?? []).entries()) {
    for (const field of ["expression", "messageExpression"] as const) {
      const expression = validation[field];
      if (!expression) continue;
      const texts = kinds.flatMap(({ name, environment }) => {
        const { error } = environment.compile(expression);
        return error === undefined ? [] : [
          `${name.includes("/") ? name : `/${name}`}: ${
            error.replace(/^compilation failed: /, "")
          }\n`,
        ];
      });
      if (texts.length === 0) continue;
      warnings.push({
        fieldRef: `spec.validations[${index}].${field}`,
        warning: texts.join("\n"),
      });
    }
  }
  return warnings;
}

/** Kinds that the rules of a policy name without wildcards, sorted. */
function kindsOf(
  { matchConstraints }: PolicySpec,
  resources: Resources,
): View[] {
  const found = new Map<string, View>();
  for (const rule of matchConstraints?.resourceRules ?? []) {
    const { apiGroups = [], apiVersions = [], resources: names = [] } = rule;
    if ([...apiGroups, ...apiVersions].includes("*")) continue;
    for (const group of apiGroups) {
      for (const plural of names.filter((name) => !/[*/]/.test(name))) {
        const definition = resources.find(group, plural);
        for (const version of definition?.versions ?? []) {
          if (!definition || !apiVersions.includes(version.name)) continue;
          found.set(`${group} ${version.name} ${definition.kind}`, {
            definition,
            version,
          });
        }
      }
    }
  }
  return [...found.entries()].sort(([a], [b]) => a < b ? -1 : 1)
    .slice(0, MAX_KINDS).map(([, kind]) => kind);
}

function paramsSchema(
  { paramKind }: PolicySpec,
  resources: Resources,
): OpenApiSchema | undefined {
  if (paramKind === undefined) return undefined;
  const { apiVersion = "", kind = "" } = paramKind;
  const { group, version } = parseApiVersion(apiVersion);
  const schema = resources.findKind(group, kind)?.versions
    .find(({ name }) => name === version)?.schema;
  return schema && typed(schema, 0);
}

const ANYTHING: OpenApiSchema = { "x-kubernetes-int-or-string": true };

/** Schema without references; unknown parts have any type. */
function typed(schema: Schema, depth: number): OpenApiSchema {
  const { type, intOrString, properties, format } = schema;
  if (depth > MAX_DEPTH || intOrString) return ANYTHING;
  if (type === "array") {
    return {
      type,
      items: schema.items ? typed(schema.items, depth + 1) : ANYTHING,
    };
  }
  if (type !== "object" && properties.size === 0) {
    return type === undefined ? ANYTHING : { type, format };
  }
  const others = schema.additionalProperties;
  if (properties.size === 0) {
    return others
      ? { type: "object", additionalProperties: typed(others, depth + 1) }
      : ANYTHING;
  }
  return {
    type: "object",
    properties: Object.fromEntries(
      [...properties].map(([name, inner]) =>
        [name, typed(inner, depth + 1)] as const
      ),
    ),
  };
}
