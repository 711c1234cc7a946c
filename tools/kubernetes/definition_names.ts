import type { OpenApiSchema } from "../../core/patch/schema.ts";

/** The names that a schema refers to, itself and below. */
export function references(schema: OpenApiSchema): string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === "object" && value !== null) {
      for (const [key, child] of Object.entries(value)) {
        if (key === "$ref" && typeof child === "string") {
          found.push(child.slice(child.lastIndexOf("/") + 1));
        } else visit(child);
      }
    }
  };
  visit(schema);
  return found;
}

/** `apps/v1` of `io.k8s.api.apps.v1.Deployment`; `meta/v1` of the shared ones. */
export function fileKey(definition: string): string {
  const parts = definition.split(".");
  const [group = "", version = ""] = parts.slice(-3, -1);
  return `${group}/${version}`;
}

export function fileOf(definition: string): string {
  return `${fileKey(definition).replace("/", "_")}.ts`;
}

/** What tells a definition of a less common group from one of the same name. */
export function prefixOf(definition: string): string {
  const [group = "", version = ""] = fileKey(definition).split("/");
  const name = group[0]?.toUpperCase() + group.slice(1);
  return group === "autoscaling" ? `${name}${version.toUpperCase()}` : name;
}

/** `csi-driver` of `CSIDriver`, as in the addresses of the reference. */
export function kebabOf(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1-$2").toLowerCase();
}

/** What the schema of a field says beside the type. */
export function fieldFacts(property: OpenApiSchema): string[] {
  const facts: string[] = [];
  const keys = property["x-kubernetes-list-map-keys"];
  if (keys) {
    const names = keys.map((key) => `\`${key}\``).join(" and ");
    facts.push(`List with the key${keys.length > 1 ? "s" : ""} ${names}.`);
  } else if (property["x-kubernetes-list-type"] === "set") {
    facts.push("Set of values.");
  }
  if (property.format === "byte") facts.push("In base64.");
  if (typeof property.default === "string" && property.default !== "") {
    facts.push(`\`${property.default}\` if absent.`);
  }
  return facts;
}
