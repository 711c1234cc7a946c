/** YAML text of objects, one document each, for `kubectl apply -f`. */
export async function yamlDocuments(
  objects: readonly unknown[],
): Promise<string> {
  const { stringify } = await import("yaml");
  return objects.map((object) =>
    stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 })
  ).join("---\n");
}
