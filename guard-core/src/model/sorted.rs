//! Sorted vectors instead of `BTreeMap`, `BTreeSet` and `slice::sort`, whose instances were a fifth of the code that a
//! build script compiles, without optimization.

use crate::text::lists::IteratorExt as _;
use std::borrow::Borrow;
use std::cmp::Ordering;

/// Sorts stably.
pub fn sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let order = merge_sort(items.len(), &|one, other| compare(&items[one], &items[other]) == Ordering::Greater);
    for (place, from) in &swaps_to(order) {
        items.swap(*place, *from);
    }
}

/// Returns the swaps that bring a list into this order.
fn swaps_to(mut order: Vec<usize>) -> Vec<(usize, usize)> {
    let mut swaps = Vec::new();
    for start in 0..order.len() {
        let mut place = start;
        while order[place] != start {
            let from = std::mem::replace(&mut order[place], place);
            swaps.push((place, from));
            place = from;
        }
        order[place] = place;
    }
    swaps
}

/// Returns the stable order of the numbers below `count`. One function, without type parameters, sorts lists of all types.
fn merge_sort(count: usize, is_after: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect_vec();
    let mut merged = order.clone();
    let mut width = 1;
    while width < count {
        let mut start = 0;
        while start < count {
            let (middle, end) = ((start + width).min(count), (start + 2 * width).min(count));
            let (mut left, mut right) = (start, middle);
            for place in &mut merged[start..end] {
                if left == middle || (right < end && is_after(order[left], order[right])) {
                    *place = order[right];
                    right += 1;
                } else {
                    *place = order[left];
                    left += 1;
                }
            }
            start = end;
        }
        std::mem::swap(&mut order, &mut merged);
        width *= 2;
    }
    order
}

/// Sorts stably.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, &T::cmp);
}

/// Inserts an item into a sorted list. Returns false if the list contains it.
pub fn insert<T: Ord>(items: &mut Vec<T>, item: T) -> bool {
    match items.binary_search(&item) {
        Ok(_) => false,
        Err(place) => {
            items.insert(place, item);
            true
        }
    }
}

/// A map, sorted by its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V>(Vec<(K, V)>);

impl<K: Ord, V> SortedMap<K, V> {
    /// Inserts or replaces a value.
    pub fn insert(&mut self, key: K, value: V) {
        match self.0.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (key, value)),
        }
    }

    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.0.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        Some(&self.0[place].1)
    }

    /// Returns the entries, sorted.
    pub fn entries(&self) -> &[(K, V)] {
        &self.0
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_is_stable() {
        let mut items = vec![(3, 'a'), (1, 'b'), (3, 'c'), (2, 'd'), (1, 'e')];
        sort_by(&mut items, &|one, other| one.0.cmp(&other.0));
        assert_eq!(items, [(1, 'b'), (1, 'e'), (2, 'd'), (3, 'a'), (3, 'c')]);
        for count in 0..70 {
            let mut items: Vec<(usize, usize)> = (0..count).map(|number| (number * 37 % 11, number)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_by(&mut items, &|one, other| one.0.cmp(&other.0));
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn known_item_is_not_inserted() {
        let mut items = vec![1, 3];
        assert!(insert(&mut items, 2) && !insert(&mut items, 3) && insert(&mut items, 0));
        assert_eq!(items, [0, 1, 2, 3]);
    }

    #[test]
    fn map_keeps_last_value() {
        let map = SortedMap::from_iter([("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(map.entries(), [("a", 2), ("b", 3)]);
        assert_eq!((map.get("b"), map.get("c")), (Some(&3), None));
    }
}
