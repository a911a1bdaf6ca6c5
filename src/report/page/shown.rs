//! Which axes of a plan the charts show.

use super::ReportError;
use crate::sweep::axis::Axis;
use crate::sweep::plan::Plan;
use crate::wording;

/// Names of the axes of the heat maps: rows, columns, and the one that small multiples show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// The axis of the rows.
    pub rows: String,
    /// The axis of the columns.
    pub columns: String,
    /// The axis of the panels; by default behaviours, or else the first that is left.
    pub levels: Option<String>,
}

/// Numbers of the axes that the charts show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) rows: Option<usize>,
    pub(super) columns: Option<usize>,
    /// Has a panel for each of its points.
    pub(super) levels: Option<usize>,
    pub(super) behaviour: Option<usize>,
    /// Axes whose points are sizes, which lines are drawn over.
    pub(super) sizes: Vec<usize>,
    /// Axes whose costs are compared: policies, or else behaviours, or else the first axis.
    pub(super) costs: Vec<usize>,
    /// Pages of different sizes cannot be added up.
    pub(super) page_size: Option<usize>,
}

pub(super) fn shown(plan: &Plan, axes: Option<&Axes>) -> Result<Shown, ReportError> {
    let first =
        |wanted: &dyn Fn(&str) -> bool| plan.axes.iter().position(|axis| sets(axis, wanted));
    let behaviour = first(&|path| path.starts_with("behaviour.") || path == "profile");
    let page_size = first(&|path| path == "layout.page_size");
    let (rows, columns) = match axes {
        Some(axes) => {
            let rows = axis(plan, &axes.rows, &[])?;
            (Some(rows), Some(axis(plan, &axes.columns, &[rows])?))
        }
        None => {
            let ranks = first(&|path| path == "layout.ranks");
            match (page_size, ranks) {
                (Some(pages), Some(ranks)) if pages != ranks => (Some(pages), Some(ranks)),
                _ => {
                    let place = |place| (place < plan.axes.len()).then_some(place);
                    (place(0), place(1))
                }
            }
        }
    };
    let levels = match axes.and_then(|axes| axes.levels.as_ref()) {
        Some(name) => {
            let taken: Vec<usize> = [rows, columns].into_iter().flatten().collect();
            Some(axis(plan, name, &taken)?)
        }
        None => {
            let free = |axis: &usize| ![rows, columns].contains(&Some(*axis));
            behaviour.filter(free).or_else(|| (0..plan.axes.len()).find(free))
        }
    };
    let of_kind = |wanted: &dyn Fn(&Axis) -> bool| -> Vec<usize> {
        (0..plan.axes.len()).filter(|&axis| wanted(&plan.axes[axis])).collect()
    };
    let sizes = of_kind(&|axis| axis.points.len() > 1 && sizes_in_order(axis).is_some());
    let policies = of_kind(&|axis| sets(axis, &is_policy));
    let costs = if policies.is_empty() {
        behaviour.or((!plan.axes.is_empty()).then_some(0)).into_iter().collect()
    } else {
        policies
    };
    Ok(Shown { rows, columns, levels, behaviour, sizes, costs, page_size })
}

fn sets(axis: &Axis, wanted: &dyn Fn(&str) -> bool) -> bool {
    axis.points.iter().flat_map(|point| &point.set).any(|(path, _)| wanted(path))
}

fn is_policy(path: &str) -> bool {
    let policies = ["cache", "eviction", "free_order", "admission"];
    path.rsplit('.').next().is_some_and(|last| policies.contains(&last))
}

/// The points of an axis whose names all are sizes, from the smallest.
pub(super) fn sizes_in_order(axis: &Axis) -> Option<Vec<usize>> {
    let size = |name: &str| name.replace('_', "").parse::<u64>().ok();
    let sizes: Option<Vec<u64>> = axis.points.iter().map(|point| size(&point.name)).collect();
    let sizes = sizes?;
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&point| sizes[point]);
    Some(order)
}

/// The number of an axis other than the `taken` ones.
fn axis(plan: &Plan, name: &str, taken: &[usize]) -> Result<usize, ReportError> {
    let free = || plan.axes.iter().enumerate().filter(|(index, _)| !taken.contains(index));
    let found = free().find(|(_, axis)| axis.name == name);
    found.map(|(index, _)| index).ok_or_else(|| {
        let known: Vec<&str> = free().map(|(_, axis)| axis.name.as_str()).collect();
        let none = match plan.axes.len() {
            0 => "the plan has no axis".to_owned(),
            1 => format!("the plan has one axis only, {}", plan.axes[0].name),
            axes => format!("all {axes} axes of the plan are named before it"),
        };
        let wanted = wording::one_of(&known, &none);
        ReportError::UnknownAxis { name: name.to_owned(), wanted }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::plan::tests::{PLAN, small, sources};

    #[test]
    fn axes_default_to_page_size_and_ranks_and_unknown_ones_are_refused() {
        let plan = small();
        let shown_by_default = Shown {
            rows: Some(0),
            columns: Some(1),
            levels: Some(2),
            behaviour: Some(2),
            sizes: vec![0, 1],
            costs: vec![2],
            page_size: Some(0),
        };
        assert_eq!(shown(&plan, None).unwrap(), shown_by_default);
        let axes = |names: [&str; 3]| {
            let [rows, columns, levels] = names.map(str::to_owned);
            Axes { rows, columns, levels: (!levels.is_empty()).then_some(levels) }
        };
        let error = shown(&plan, Some(&axes(["behaviour", "layout.rings", ""]))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "axis: must be one of layout.page_size, layout.ranks, got \"layout.rings\""
        );
        assert!(shown(&plan, Some(&axes(["behaviour", "behaviour", ""]))).is_err());
        let turned = axes(["behaviour", "layout.ranks", "layout.page_size"]);
        let turned = shown(&plan, Some(&turned)).unwrap();
        assert_eq!((turned.rows, turned.columns, turned.levels), (Some(2), Some(1), Some(0)));
        let again = axes(["behaviour", "layout.ranks", "layout.ranks"]);
        assert!(shown(&plan, Some(&again)).is_err());
        let other = PLAN
            .replace("layout.ranks", "decode.pages")
            .replace("layout.page_size", "prefill.pages");
        let plan = Plan::parse(sources(&other)).unwrap();
        assert_eq!(shown(&plan, None).unwrap(), Shown { page_size: None, ..shown_by_default });
    }

    #[test]
    fn an_axis_that_no_name_can_be_is_to_be_left_out() {
        // The small plan's first axes; all three of them end with its text.
        let error = |axes: usize, rows: &str, columns: &str, levels: Option<&str>| {
            let views: Vec<&str> = PLAN.split("[[axes]]").take(axes + 1).collect();
            let plan = Plan::parse(sources(&views.join("[[axes]]"))).unwrap();
            let levels = levels.map(str::to_owned);
            let axes = Axes { rows: rows.to_owned(), columns: columns.to_owned(), levels };
            shown(&plan, Some(&axes)).unwrap_err().to_string()
        };
        let (pages, ranks) = ("layout.page_size", "layout.ranks");
        for (error, since) in [
            (error(0, "x", "y", None), "the plan has no axis"),
            (error(1, pages, "x", None), "the plan has one axis only, layout.page_size"),
            (error(2, pages, ranks, Some("x")), "all 2 axes of the plan are named before it"),
        ] {
            assert_eq!(error, format!("axis: must be left out, since {since}, got \"x\""));
        }
    }

    #[test]
    fn sizes_are_numbers_and_rise() {
        let mut axis = small().axes[0].clone();
        axis.points[0].name = "1_024".to_owned();
        assert_eq!(sizes_in_order(&axis), Some(vec![1, 0]));
        axis.points[0].name = "large".to_owned();
        assert_eq!(sizes_in_order(&axis), None);
    }

    #[test]
    fn caches_evictions_orders_and_admissions_are_policies() {
        for path in ["decode.eviction", "prefill.cache", "decode.free_order", "prefill.admission"] {
            assert!(is_policy(path), "{path}");
        }
        assert!(!is_policy("layout.ranks") && !is_policy("behaviour.eviction_lock"));
    }
}
