/** Text as one word of a command line: quoted where a shell would change it. */
export function shellText(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text)
    ? text
    : `'${text.replaceAll("'", "'\\''")}'`;
}
