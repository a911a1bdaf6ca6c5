//! Passes over what prompts share: contents, offsets, namespaces, priorities.

use super::search::Search;
use crate::prompt::ContentId;
use crate::scenario::RequestSpec;
use crate::units::Tokens;

/// Lets requests share less: outputs without a name, runs with a content of their own, offsets,
/// namespaces and priorities at 0.
pub(super) fn simplify(search: &mut Search) {
    let everywhere: [fn(&mut RequestSpec); 3] =
        [|spec| spec.output_content = None, |spec| spec.namespace = 0, |spec| spec.priority = 0];
    for change in everywhere {
        let mut requests = search.requests().to_vec();
        requests.iter_mut().for_each(change);
        search.offer_requests(requests);
        for index in 0..search.requests().len() {
            search.offer_request(index, change);
        }
    }
    for index in 0..search.requests().len() {
        for run in 0..search.requests()[index].prompt.len() {
            // `numbering::number_anew` keeps numbers below the count of runs.
            search.offer_request(index, |spec| {
                spec.prompt[run].content = ContentId(ContentId::OWN);
                spec.prompt[run].offset = Tokens(0);
            });
            search.offer_request(index, |spec| spec.prompt[run].offset = Tokens(0));
        }
    }
}
