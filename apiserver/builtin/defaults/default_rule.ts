/**
 * Defaults of the built-in kinds that their schemas do not contain: one rule for
 * each struct, grouped by area. Pure functions of a struct; must not import
 * anything but the types of the kinds.
 *
 * @module
 */

/**
 * Sets the defaults of a struct, in place. Structs in its fields are defaulted
 * afterwards.
 */
export type DefaultRule = (value: never) => void;

/** Default rules with the definitions they apply to, named without `io.k8s.`. */
export type DefaultRules = readonly (readonly [string, DefaultRule])[];

/** Entry of {@linkcode DefaultRules}; type checks the function. */
export function rule<T>(
  definition: string,
  setDefaults: (value: T) => void,
): readonly [string, DefaultRule] {
  return [definition, setDefaults as DefaultRule];
}
