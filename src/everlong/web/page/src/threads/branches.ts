/** The branches of a thread as a tree that is read from top to bottom. Pure. */
import type { BranchNode } from "../api";

export interface Twig {
  node: BranchNode;
  depth: number;
}

/** Each branch below the one that it left, in the order in which they left it. */
export function twigs(nodes: BranchNode[], root: string): Twig[] {
  const below = new Map<string | null, BranchNode[]>();
  for (const node of nodes) below.set(node.parent, [...(below.get(node.parent) ?? []), node]);
  const first = nodes.find((node) => node.id === root);
  const found: Twig[] = [];
  const waiting: Twig[] = first ? [{ node: first, depth: 0 }] : [];
  const seen = new Set<string>();
  for (let twig = waiting.pop(); twig; twig = waiting.pop()) {
    if (seen.has(twig.node.id)) continue;
    seen.add(twig.node.id);
    found.push(twig);
    const { depth } = twig;
    const children = [...(below.get(twig.node.id) ?? [])].sort((a, b) => a.order - b.order);
    waiting.push(...children.reverse().map((node) => ({ node, depth: depth + 1 })));
  }
  return found;
}
