/** Reserved words of CEL. */
const RESERVED: ReadonlySet<string> = new Set(
  `true false null in as break const continue else for function if import let
  loop package namespace return var void while`.split(/\s+/),
);

const ESCAPES: Readonly<Record<string, string>> = {
  "__": "__underscores__",
  ".": "__dot__",
  "-": "__dash__",
  "/": "__slash__",
};

/**
 * Escaped name of a field in rules, such as `my__dash__field`; undefined if the
 * field is not accessible in CEL.
 */
export function celName(field: string): string | undefined {
  if (RESERVED.has(field)) return `__${field}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(field)) return undefined;
  return field.replace(/__|[-./]/g, (part) => ESCAPES[part] ?? part);
}
