import {
  label1035Problems,
  labelProblems,
  labelValueProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { matchesFormat } from "../schema/formats.ts";
import { type CelExtension, celLibrary } from "./cel_library.ts";

/** Named format with a function that returns the violations of a text. */
class NamedFormat {
  readonly problems: (text: string) => readonly string[];

  constructor(problems: (text: string) => readonly string[]) {
    this.problems = problems;
  }
}

/** Check of a name prefix, which may end with a dash. */
function prefix(
  problems: (text: string) => readonly string[],
): (text: string) => readonly string[] {
  return (text) => problems(text.replace(/-$/, "a"));
}

function known(
  format: string,
  problem: string,
): (text: string) => readonly string[] {
  return (text) => matchesFormat(format, text) ? [] : [problem];
}

const FORMATS: Readonly<Record<string, (text: string) => readonly string[]>> = {
  dns1123Label: labelProblems,
  dns1123Subdomain: subdomainProblems,
  dns1035Label: label1035Problems,
  qualifiedName: qualifiedNameProblems,
  dns1123LabelPrefix: prefix(labelProblems),
  dns1123SubdomainPrefix: prefix(subdomainProblems),
  dns1035LabelPrefix: prefix(label1035Problems),
  labelValue: labelValueProblems,
  uri: known("uri", "invalid URI for request"),
  uuid: known("uuid", "does not match the UUID format"),
  byte: known("byte", "invalid base64"),
  date: known("date", "invalid date"),
  datetime: known("datetime", "invalid datetime"),
};

/** CEL function `format.named()`, the formats and their method `validate()`. */
export function formatExtension(): CelExtension {
  const { Optional } = celLibrary();
  const formats = new Map(
    Object.entries(FORMATS).map(([name, problems]) =>
      [name, new NamedFormat(problems)] as const
    ),
  );
  return {
    types: { "kubernetes.NamedFormat": NamedFormat },
    namespaces: { format: "FormatNamespace" },
    functions: {
      "FormatNamespace.named(string): optional<kubernetes.NamedFormat>": (
        _: unknown,
        name: string,
      ) => {
        const format = formats.get(name);
        return format === undefined ? Optional.none() : Optional.of(format);
      },
      "kubernetes.NamedFormat.validate(string): optional<list<string>>": (
        { problems }: NamedFormat,
        text: string,
      ) => {
        const found = problems(text);
        return found.length === 0 ? Optional.none() : Optional.of([...found]);
      },
      ...Object.fromEntries([...formats].map(([name, format]) => [
        `FormatNamespace.${name}(): kubernetes.NamedFormat`,
        () => format,
      ])),
    },
  };
}
