/** Indexes of a text such as `1,3-5`. */
export function parseIndexes(text: string | undefined): Set<number> {
  const indexes = new Set<number>();
  for (const range of text?.split(",") ?? []) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(range.trim());
    if (match === null) continue;
    const [, first, last = first] = match;
    // Jobs have at most 100,000 indexes.
    const end = Math.min(Number(last), 100_000);
    for (let index = Number(first); index <= end; index++) indexes.add(index);
  }
  return indexes;
}

/** Text of indexes; three or more in a row become a range such as `3-5`. */
export function formatIndexes(indexes: ReadonlySet<number>): string {
  const parts: string[] = [];
  const sorted = [...indexes].sort((a, b) => a - b);
  for (let at = 0; at < sorted.length;) {
    const first = sorted[at] as number;
    let last = first;
    while (sorted[++at] === last + 1) last++;
    if (last === first) parts.push(String(first));
    else {parts.push(
        last === first + 1 ? `${first},${last}` : `${first}-${last}`,
      );}
  }
  return parts.join(",");
}
