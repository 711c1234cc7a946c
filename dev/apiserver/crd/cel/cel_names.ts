/** Reserved words of CEL, which are escaped in names of fields. */
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

const UNESCAPES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(ESCAPES).map(([part, escape]) => [escape, part]),
);

/** Whether a name is a reserved word of CEL. */
export function isReserved(name: string): boolean {
  return RESERVED.has(name);
}

/**
 * Escaped name of a field in rules, such as `my__dash__field`; undefined if the
 * field is not accessible in CEL.
 */
export function celName(field: string): string | undefined {
  if (RESERVED.has(field)) return `__${field}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(field)) return undefined;
  return field.replace(/__|[-./]/g, (part) => ESCAPES[part] ?? part);
}

/** Name of a field from its escaped name; undefined if the name escapes none. */
export function fieldName(escaped: string): string | undefined {
  let valid = true;
  const name = escaped.replace(/__[^_]+__/g, (part) => {
    const known = UNESCAPES[part];
    if (known !== undefined) return known;
    const word = part.slice(2, -2);
    valid &&= RESERVED.has(word) && part.length === escaped.length;
    return word;
  });
  return valid ? name : undefined;
}
