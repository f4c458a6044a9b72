/** SVG paths of line drawings on a 24 × 24 grid. */

export const CHAT = "M4 5h16v11H11l-5 4v-4H4zM8 9h8M8 12h5";
export const CLOSE = "M6 6l12 12M18 6L6 18";
export const COPY = "M9 9h10v10H9zM5 15V5h10";
export const DOWN_ARROW = "M12 5v14M6 13l6 6 6-6";
export const EXTERNAL_LINK = "M9 6h9v9M18 6L7 17";
export const PLUS = "M12 5v14M5 12h14";
export const QUOTE = "M5 5h14M5 10h14M5 15h8";
export const RETRY = "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5";
export const SEND = "M5 12h14M13 6l6 6-6 6";
export const STOP = "M7 7h10v10H7z";
export const THUMB_DOWN = "M17 4v9l-5 8-2-1 1-6H5L7 4zM20 13V4";
export const THUMB_UP = "M7 20V11l5-8 2 1-1 6h6l-2 10zM4 11v9";
