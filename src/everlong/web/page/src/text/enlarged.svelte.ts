/** The pictures that are shown large, and which of them. */

export interface Shown {
  source: string;
  label: string;
  /** In px, if the picture itself has no size, such as a drawing. */
  width?: number;
}

class Enlarged {
  pictures = $state.raw<Shown[]>([]);
  at = $state(0);
  shown = $state(false);

  readonly picture = $derived<Shown | undefined>(this.pictures[this.at]);

  open(pictures: Shown[], at: number) {
    this.pictures = pictures;
    this.at = at;
    this.shown = true;
  }

  /** Move by that many pictures, around the ends. */
  step(by: number) {
    const count = this.pictures.length;
    if (count) this.at = (this.at + by + count) % count;
  }
}

export const enlarged = new Enlarged();
