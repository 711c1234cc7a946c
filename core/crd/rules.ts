import type { ValidationRule } from "./kind_definition.ts";

/** Path of a field through objects, such as `.spec.storageClass`. */
const FIELD_PATH_REGEXP = /^(?:\.[A-Za-z_]\w*)+$/;

/**
 * Rule in CEL that the API server enforces, for `rules` of `defineKind`, where
 * `self` is the whole object, or for one field, where `self` is its value:
 * `.meta({ "x-kubernetes-validations": [rule("self.size() < 9")] })`.
 *
 * @typeParam T Object as the twin takes it.
 * @param expression CEL expression on `self` and, on updates, `oldSelf`; must be
 * true. A rule with `oldSelf` runs only on updates.
 * @param options Message, reason and place of the error, and the twin: the same
 * rule in JavaScript, for code that applies it without a server. `checkRules` of
 * `@coracle/dev` shows with generated objects that both agree.
 * @throws {TypeError} If the expression is not a text.
 *
 * @example A rule over two fields
 * ```ts
 * import { crdManifest, defineKind, rule } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Pool = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Pool",
 *   spec: z.object({ min: z.int(), max: z.int() }),
 *   rules: [
 *     rule("self.spec.max >= self.spec.min", {
 *       message: "max must not be below min",
 *       fieldPath: ".spec.max",
 *     }),
 *   ],
 * });
 * if (crdManifest(Pool).spec.versions.length !== 1) throw new Error("Expected v1");
 * ```
 */
export function rule<T = unknown>(
  expression: string,
  options: Omit<ValidationRule, "rule" | "twin"> & {
    /** The same rule in JavaScript; `oldSelf` is undefined on creation. */
    readonly twin?: ((self: T, oldSelf: T | undefined) => boolean) | undefined;
  } = {},
): ValidationRule {
  if (typeof expression !== "string") {
    throw new TypeError(
      `Cannot write a rule: the expression must be CEL: received ${typeof expression}`,
    );
  }
  return Object.freeze({ rule: expression, ...options });
}

/**
 * Rule that a value never changes after the object has been created: neither
 * added, nor changed, nor removed.
 *
 * @param path Path of the field from the object, such as `.spec.storageClass`,
 * for `rules` of `defineKind`. Without it the rule is for the schema of a field
 * that always has a value: `.meta({ "x-kubernetes-validations": [immutable()] })`.
 * @param options Message; `"… is immutable"` if absent.
 * @throws {TypeError} If the path is not one through objects.
 *
 * @example A field that keeps its first value
 * ```ts
 * import { defineKind, immutable } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Volume = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Volume",
 *   spec: z.object({ storageClass: z.string().optional(), size: z.int() }),
 *   rules: [immutable(".spec.storageClass")],
 * });
 * if (Volume.versions.length !== 1) throw new Error("Expected v1");
 * ```
 */
export function immutable(
  path?: string,
  { message }: { readonly message?: string | undefined } = {},
): ValidationRule {
  if (path === undefined) {
    return rule("self == oldSelf", { message: message ?? "is immutable" });
  }
  if (typeof path !== "string" || !FIELD_PATH_REGEXP.test(path)) {
    throw new TypeError(
      `Cannot write a rule: 'path' must be such as .spec.storageClass, and not through lists, whose items have rules of their own: received ${
        JSON.stringify(path)
      }`,
    );
  }
  // Absent fields compare as well, and those of absent parents. Optional steps would
  // say so in less, but the API server refuses their estimated cost.
  const steps = path.slice(1).split(".");
  const present = (root: string) =>
    steps.map((_, index) =>
      `has(${root}.${steps.slice(0, index + 1).join(".")})`
    ).join(" && ");
  const is = present("self");
  const was = present("oldSelf");
  const same = `self${path} == oldSelf${path}`;
  return rule(`(${is}) == (${was}) && (!(${is}) || ${same})`, {
    message: message ?? `${path.slice(1)} is immutable`,
    fieldPath: path,
  });
}
