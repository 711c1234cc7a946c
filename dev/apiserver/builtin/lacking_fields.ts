import { isJsonObject } from "@coracle/operator/internal";
import { type GoType, structIn } from "./go_types.ts";

/** Fields of a struct to drop, and its fields that contain structs with such. */
interface LackingPlan {
  readonly fields: readonly string[];
  readonly structs: readonly (readonly [field: string, plan: LackingPlan])[];
}

/** Fields that a version of Kubernetes does not know yet. */
export class LackingFields {
  readonly #fields: Readonly<Record<string, readonly string[]>>;
  readonly #plans: Map<string, LackingPlan | undefined> = new Map();

  /**
   * Creates the set.
   *
   * @param fields Fields by OpenAPI definition.
   */
  constructor(fields: Readonly<Record<string, readonly string[]>>) {
    this.#fields = fields;
  }

  /**
   * Drops the fields from a decoded object, in place.
   *
   * @returns The paths of those that it had.
   */
  drop(type: GoType, object: unknown): string[] {
    const plan = this.#planFor(type);
    const found: string[] = [];
    if (plan) drop(plan, object, { at: "", found });
    return found;
  }

  #planFor(type: GoType): LackingPlan | undefined {
    const { definition } = type;
    if (this.#plans.has(definition)) return this.#plans.get(definition);
    this.#plans.set(definition, undefined);
    const structs: [string, LackingPlan][] = [];
    for (const { name, schema } of type.fields.values()) {
      const struct = structIn(schema);
      const plan = struct && this.#planFor(struct);
      if (plan) structs.push([name, plan]);
    }
    const fields = this.#fields[definition] ?? [];
    const plan = fields.length + structs.length > 0
      ? { fields, structs }
      : undefined;
    this.#plans.set(definition, plan);
    return plan;
  }
}

function drop(
  plan: LackingPlan,
  value: unknown,
  { at, found }: { readonly at: string; readonly found: string[] },
): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      drop(plan, item, { at: `${at}[${index}]`, found });
    }
  } else if (isJsonObject(value)) {
    const below = at === "" ? "" : `${at}.`;
    for (const name of plan.fields) {
      if (value[name] === undefined) continue;
      // An empty struct is written where the client has sent nothing.
      if (!isEmptyStruct(value[name])) found.push(`${below}${name}`);
      delete value[name];
    }
    for (const [name, inner] of plan.structs) {
      drop(inner, value[name], { at: `${below}${name}`, found });
    }
  }
}

function isEmptyStruct(value: unknown): boolean {
  return isJsonObject(value) && Object.keys(value).length === 0;
}
