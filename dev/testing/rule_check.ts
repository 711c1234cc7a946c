import type { UntypedObject } from "@coracle/operator/client";
import type { DefinedKind, ValidationRule } from "@coracle/operator/crd";
import { checkOption, isDefinedKind } from "@coracle/operator/internal";
import { compileRules } from "../apiserver/crd/cel/rule_validator.ts";
import { versionObjects } from "./check/version_objects.ts";

/** How often a rule was tried, and how often it held. */
export interface CheckedRule {
  /** Version of the kind. */
  readonly version: string;
  /** CEL expression. */
  readonly rule: string;
  /** Number of objects, or of changes of one, for which it held. */
  readonly held: number;
  /** Number of those for which it did not. */
  readonly broken: number;
}

/**
 * Checks that each rule of a kind and its twin in JavaScript agree: both judge
 * objects that are generated from the schema, and changes of each into the others.
 *
 * @param kind Kind of `defineKind` with `rules` that have twins.
 * @param options.examples Further objects, of any version, such as one that breaks
 * a rule which no generated object breaks.
 * @returns How often each rule held, and how often not: a rule that held for all
 * needs an example that breaks it.
 * @throws {TypeError} If no rule has a twin.
 * @throws {Error} If a rule and its twin disagree; the error names the object.
 *
 * @example A rule and its twin
 * ```ts
 * import { checkRules } from "@coracle/dev";
 * import { defineKind, rule } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Pool = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Pool",
 *   spec: z.object({ min: z.int(), max: z.int() }),
 *   rules: [
 *     rule("self.spec.max >= self.spec.min", {
 *       twin: ({ spec }: { spec: { min: number; max: number } }) =>
 *         spec.max >= spec.min,
 *     }),
 *   ],
 * });
 * const [checked] = await checkRules(Pool);
 * if (!checked?.held || !checked.broken) throw new Error("Expected both");
 * ```
 */
export async function checkRules(
  kind: DefinedKind,
  { examples }: { readonly examples?: readonly object[] | undefined } = {},
): Promise<readonly CheckedRule[]> {
  checkOption(examples, "array?", {
    name: "examples",
    subject: "checkRules()",
  });
  const twins = isDefinedKind(kind)
    ? Object.entries(kind.rules ?? {}).flatMap(([version, rules]) =>
      rules.filter(({ twin }) => twin !== undefined)
        .map((rule) => ({ version, rule }))
    )
    : [];
  if (twins.length === 0) {
    throw new TypeError(
      `Cannot check rules: the kind must have a rule with a twin: received ${
        String(kind?.kind)
      }`,
    );
  }
  const bare = { ...kind, versions: kind.versions.map(withoutRules) };
  const versions = await versionObjects(bare, examples);
  return twins.map(({ version, rule }) => {
    const objects = versions.find(({ name }) => name === version)?.objects ??
      [];
    const { schema } = bare.versions.find(({ name }) => name === version) ?? {};
    return checked(rule, {
      version,
      objects,
      schema: schema?.openAPIV3Schema ?? {},
    });
  });
}

type Version = DefinedKind["versions"][number];

/** Version whose objects need not keep the rules of the whole object. */
function withoutRules(version: Version): Version {
  const { "x-kubernetes-validations": _, ...openAPIV3Schema } =
    version.schema.openAPIV3Schema;
  return { ...version, schema: { openAPIV3Schema } };
}

function checked(
  given: ValidationRule,
  { version, objects, schema }: {
    readonly version: string;
    readonly objects: readonly UntypedObject[];
    readonly schema: Version["schema"]["openAPIV3Schema"];
  },
): CheckedRule {
  const { twin, ...rule } = given;
  const validator = compileRules(
    { ...bareSchema(schema), "x-kubernetes-validations": [rule] },
    true,
  );
  const judge = twin as
    | ((self: unknown, oldSelf: unknown) => boolean)
    | undefined;
  const usesOld = /\boldSelf\b/.test(rule.rule);
  const olds = usesOld
    ? [...objects, ...rule.optionalOldSelf ? [undefined] : []]
    : [undefined];
  const count = { held: 0, broken: 0 };
  for (const self of objects) {
    for (const old of olds) {
      const causes = validator?.validate(self, old) ?? [];
      const holds = causes.length === 0;
      const twinHolds = judge?.(
        structuredClone(self),
        structuredClone(old),
      );
      if (holds !== twinHolds) {
        const why = causes.map(({ message }) => message).join();
        throw new Error(
          `Cannot trust the twin of ${rule.rule}: the rule ${
            holds ? "holds" : `does not hold (${why})`
          } and the twin returns ${twinHolds}: received ${
            JSON.stringify({ self: self.spec, oldSelf: old?.spec })
          }`,
        );
      }
      count[holds ? "held" : "broken"]++;
    }
  }
  return { version, rule: rule.rule, ...count };
}

/** Schema without the rules of its fields, which have no twins. */
function bareSchema(
  schema: Version["schema"]["openAPIV3Schema"],
): typeof schema {
  return JSON.parse(
    JSON.stringify(
      schema,
      (key, value) => key === "x-kubernetes-validations" ? undefined : value,
    ),
  );
}
