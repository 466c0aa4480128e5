/** Whether the sheet of shortcuts is open. */
export const help = $state({ open: false });
