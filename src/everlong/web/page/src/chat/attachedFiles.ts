/** Separates attached files, which are part of a message's text, from its words. Pure. */
export interface AttachedFile {
  name: string;
  text: string;
}

const FILE = /\n?<file name="([^"\n]*)">\n([\s\S]*?)\n<\/file>/g;

/** 'Look\n<file name="a.txt">\nboats: 7\n</file>' -> the words "Look" and the file a.txt */
export function splitFiles(text: string): { words: string; files: AttachedFile[] } {
  const files: AttachedFile[] = [];
  const words = text.replace(FILE, (_, name: string, content: string) => {
    files.push({ name, text: content });
    return "";
  });
  return { words, files };
}
