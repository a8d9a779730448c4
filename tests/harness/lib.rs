//! What every end to end suite shares.
