import type { IconName } from "./icons";

/** One entry of a menu. */
export interface Item {
  label: string;
  act: () => void;
  note?: string;
  icon?: IconName;
  /** Set if one of several items can be chosen. */
  chosen?: boolean;
  danger?: boolean;
  disabled?: boolean;
  /** Whether there is a line above it. */
  divided?: boolean;
}
