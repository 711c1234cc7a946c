/**
 * What a write says of the part of the object that it is about, as `sent` of an
 * `OwnWriteResult`: an apply configuration or a merge patch. Other writes change
 * something whenever they succeed, or do not say what.
 */
export function partSent(verb: string, body: unknown): unknown {
  const isPart = verb === "apply" || (verb === "patch" && !Array.isArray(body));
  return isPart ? body : undefined;
}
