import type { IconName } from "./icons";

/** One entry of a menu. */
export interface Item {
  label: string;
  act: () => void;
  note?: string;
  icon?: IconName;
  /** Set where one of several can be chosen. */
  chosen?: boolean;
  danger?: boolean;
  disabled?: boolean;
  /** A line above it. */
  divided?: boolean;
}
