/** What the command line needs of its process. */
export interface CliDeps {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where the search for `.local/endpoints.json` begins. */
  readonly cwd: string;
  readonly now: () => Date;
  /** Writes to standard output; for results. */
  readonly out: (text: string) => void;
  /** Writes to standard error; for everything else. */
  readonly err: (text: string) => void;
  /** Whether a terminal sends its signals (Ctrl-C) to our child processes too. */
  readonly hasTerminal: boolean;
  /** Sets the exit code of a command that did not fail with an error. */
  readonly exitWith: (code: number) => void;
}
