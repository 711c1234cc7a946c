/** Version of this package, printed by `coracle --version`. */
export const VERSION = "0.1.0";
