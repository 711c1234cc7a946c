/**
 * Fills in what is not set in a struct, in place. What is in the struct's own
 * fields is defaulted after it.
 */
export type DefaultRule = (value: never) => void;

/** Rules by the definition that they are for, without `io.k8s.`. */
export type DefaultRules = readonly (readonly [string, DefaultRule])[];

/** One entry of {@linkcode DefaultRules}, whose function is checked. */
export function rule<T>(
  definition: string,
  setDefaults: (value: T) => void,
): readonly [string, DefaultRule] {
  return [definition, setDefaults as DefaultRule];
}
