/** The version of this package, as its requests and its command line tell it. */
export const VERSION = "0.1.0";
