/**
 * Objects as one YAML text that `kubectl apply -f` takes.
 *
 * @param objects Each becomes a document.
 */
export async function yamlDocuments(
  objects: readonly unknown[],
): Promise<string> {
  const { stringify } = await import("yaml");
  return objects.map((object) =>
    stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 })
  ).join("---\n");
}
